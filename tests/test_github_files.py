"""What a hosting site and pre-commit read: it parses, and calls what ``make`` and CI call anywhere else."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tuner.cli.main import main
from tuner.runtime.cpu.host import LIMIT_VARIABLE

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
TEMPLATES = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.md"))
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}  # keepachangelog.com, 1.1.0
CHANGELOG_LINES = 60  # for a version
CHANGELOG_COLUMNS = 120


def yaml_of(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_workflow_only_calls_what_ci_is_anywhere_with_the_pythons_that_are_promised() -> None:
    jobs = yaml_of(GITHUB / "workflows" / "ci.yml")["jobs"]
    for each in jobs.values():
        assert [step["run"] for step in each["steps"] if "run" in step] == [".ci/run"]
    assert jobs["avx2"]["steps"][-1]["env"] == {LIMIT_VARIABLE: "x86-64-v3"}
    job = jobs["ci"]
    (promise,) = re.findall(r"^- CPython (.+):", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert job["strategy"]["matrix"]["python"] == re.findall(r"3\.\d+", promise)
    assert "PYTHON ?= python3\n" in (ROOT / "Makefile").read_text()
    of_wheel = (ROOT / ".ci" / "test-wheel").read_text()
    assert re.findall(r"\S+ -m venv", of_wheel) == ['"${PYTHON:-python3}" -m venv']
    for name in ("run", "test-wheel", "bare-roots", "image"):
        script = ROOT / ".ci" / name
        assert script.stat().st_mode & 0o111
        subprocess.run(["bash", "-n", script], check=True)


def test_the_nightly_workflow_calls_targets_of_make_and_tries_the_newest_pinned_packages() -> None:
    jobs = yaml_of(GITHUB / "workflows" / "nightly.yml")["jobs"].values()
    commands = [step["run"].split() for job in jobs for step in job["steps"] if "run" in step]
    targets = [options[1] for options in commands if options[0] == "make"]
    assert targets == ["stress", "test-all", "torch", "torch", ".venv/.installed-dev", "test", "test-stock"]
    rules = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv")
    for target in targets:
        assert re.search(rf"^{re.escape(target)}:", rules, re.MULTILINE)
    (newer,) = yaml_of(GITHUB / "workflows" / "nightly.yml")["jobs"]["newer-packages"]["strategy"][
        "matrix"
    ].values()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = (*project["dependencies"], *project["optional-dependencies"]["cuda"])
    assert set(newer) == {need.partition("==")[0] for need in needs if "==" in need} | {"optuna"}


WORKFLOWS = (*sorted((GITHUB / "workflows").glob("*.yml")), ROOT / "action.yml")


def test_actions_of_others_are_pinned_by_hash_each_to_one_version() -> None:
    uses = re.findall(r"uses: (.+)", "".join(path.read_text() for path in WORKFLOWS))
    assert len(uses) > 10
    unpinned = [use for use in uses if not re.fullmatch(r"[\w/.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)]
    assert unpinned == []
    assert len(set(uses)) == len({use.partition("@")[0] for use in uses})


@pytest.mark.parametrize("name", ["ci", "nightly", "release", "docs"])
def test_a_workflow_may_write_only_where_it_uploads(name: str) -> None:
    workflow = yaml_of(GITHUB / "workflows" / f"{name}.yml")
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        writes = "write" in job.get("permissions", {}).values()
        assert writes == ("environment" in job)
        assert not writes or re.fullmatch(r"vars\.[A-Z]+ == 'yes'", job["if"])  # off until somebody owns it


def test_a_release_and_the_pages_are_made_by_make() -> None:
    rules = (ROOT / "Makefile").read_text()
    for name, command in (("release", "make release TAG=${{ github.ref_name }}"), ("docs", "make docs")):
        jobs = yaml_of(GITHUB / "workflows" / f"{name}.yml")["jobs"].values()
        assert [step["run"] for job in jobs for step in job["steps"] if "run" in step] == [command]
        assert re.search(rf"^{name}:", rules, re.MULTILINE)
    script = ROOT / ".ci" / "try-distributions"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)


def test_the_action_gives_its_inputs_to_options_that_the_command_has() -> None:
    action = yaml_of(ROOT / "action.yml")
    *_, step = action["runs"]["steps"]
    _, name, *words = step["run"].split()
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, click.Command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    given = {
        value
        for each in action["runs"]["steps"]
        for value in {**each.get("env", {}), **each.get("with", {})}.values()
    }
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} <= given


def test_the_image_runs_as_a_user_who_is_not_root_and_has_no_environment_of_the_clone() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    steps = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert steps == ["FROM", "RUN", "COPY", "RUN", "USER", "WORKDIR", "ENV", "ENTRYPOINT"]
    page = (ROOT / "docs" / "guides" / "untrusted-scripts.md").read_text()
    told = re.findall(r"^docker .+ tuner ", page.replace("\\\n", " "), re.MULTILINE)
    comments = {word for line in lines if line.startswith("#") for word in line.split()}
    assert len(told) == 2
    assert {word for command in told for word in command.split()} <= comments
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "build", "dist"} <= set(ignored)


def test_ci_leaves_tests_of_the_repository_out_where_it_tests_the_wheel() -> None:
    script = (ROOT / ".ci" / "test-wheel").read_text()
    (left_out,) = re.findall(r"^REPOSITORY_TESTS=\((.+?)\)", script, re.MULTILINE | re.DOTALL)
    reads = re.compile(r"tests\.source_files|^from docs|^ROOT = ", re.MULTILINE)
    readers = [path for path in (ROOT / "tests").glob("test_*.py") if reads.search(path.read_text())]
    assert len(readers) >= 7
    assert {str(path.relative_to(ROOT)) for path in readers} <= set(left_out.split())


def test_the_job_in_an_emulator_names_tests_that_there_are() -> None:
    script = ROOT / ".ci" / "aarch64"
    subprocess.run(["bash", "-n", script], check=True)
    (listed,) = re.findall(r"^TESTS=\(\n(.*?)^\)$", script.read_text(), re.MULTILINE | re.DOTALL)
    tests = re.findall(r'^ +"?(tests/[\w/]+\.py)(?:::(\w+))?', listed, re.MULTILINE)
    assert len(tests) > 10
    for file, function in tests:
        assert not function or f"def {function}(" in (ROOT / file).read_text()


def test_pre_commit_runs_what_make_lint_runs() -> None:
    (repository,) = yaml_of(ROOT / ".pre-commit-config.yaml")["repos"]
    (rule,) = re.findall(r"^lint:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    hooks = {_command(hook["entry"].removeprefix(".venv/bin/")) for hook in repository["hooks"]}
    assert hooks == {_command(line) for line in re.findall(r"\$\(BIN\)/(.+)", rule)}


def _command(line: str) -> str:
    """Returns a command without its options and paths."""
    return " ".join(name for name in line.split() if name.isalpha())


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_says_what_it_is_for(template: Path) -> None:
    _, head, body = template.read_text().split("---\n", 2)
    assert set(yaml.safe_load(head)) == {"name", "about"}
    assert body.strip()


def test_the_changelog_has_the_usual_form_a_short_list_for_each_version_and_at_first_only_additions() -> None:
    """What nobody had can be neither changed nor fixed."""
    text = (ROOT / "CHANGELOG.md").read_text()
    names = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert names[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", name) for name in names[1:])
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= CHANGES
    versions = re.split(r"^## .+$", text, flags=re.MULTILINE)
    assert all(len(version.splitlines()) <= CHANGELOG_LINES for version in versions)
    assert all(len(line) <= CHANGELOG_COLUMNS for line in text.splitlines())
    assert re.findall(r"^### (.+)$", versions[-1], re.MULTILINE) == ["Added"]
