from tests.cli.conftest import here, tuner

__all__ = ["here", "tuner"]
