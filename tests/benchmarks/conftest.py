from tests.cli.conftest import tuned, tuned_database, tuner

__all__ = ["tuned", "tuned_database", "tuner"]
