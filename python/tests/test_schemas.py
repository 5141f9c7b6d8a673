"""JSON documents conform to `docs/schemas`, for all examples and for texts with errors."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import jsonschema_rs
import pytest

import carbyne
from samples import ROOT

SCHEMAS = {
    path.name.split(".")[0]: json.loads(path.read_text())
    for path in (ROOT / "docs" / "schemas").glob("*.schema.json")
}
REGISTRY = jsonschema_rs.Registry([(schema["$id"], schema) for schema in SCHEMAS.values()])

# Exchanges registers between lanes; no example does this on its first architecture.
EXCHANGE = """carbyne 2
%A:[256].f32.GL
%B:[256].f32.GL
#grid:[1].block
#cta:[32].thread
Move @g <<<#grid, #cta>>> (%A) -> (%B) {
  Allocate %x:[256].f32.RF{tv=(32,8):(1,32) over #cta}
  Allocate %y:[256].f32.RF{tv=((8,4),(4,2)):((1,32),(8,128)) over #cta}
  Move <<<#grid, #cta>>> (%A) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%B)
}
"""


def validate(name: str, document: object) -> None:
    """Raises an error that names the place that contradicts the schema."""
    jsonschema_rs.Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(document)


def serve(requests: list[dict]) -> list[dict]:
    """The answers in the order of the requests, all valid."""
    for request in requests:
        validate("request", request)
    command = [sys.executable, "-m", "carbyne", "serve"]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=ROOT)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    for answer in answers:
        validate("answer", answer)
    return sorted(answers, key=lambda answer: answer["id"])


def run(commands: list[list[str]]) -> list[dict]:
    """The answers to these commands."""
    answers = serve([{"id": i, "arguments": command} for i, command in enumerate(commands)])
    assert len(answers) == len(commands)
    return answers


def examples() -> Iterator[tuple[carbyne.Program, str]]:
    """All programs under `examples`, each with the first architecture in its comments."""
    for path in sorted((ROOT / "examples").rglob("*.cby")):
        if archs := re.search(r"^// archs: (\S+)", path.read_text(), re.MULTILINE):
            yield carbyne.Program.from_file(path), archs[1]


def decomposed(example: tuple[carbyne.Program, str]) -> tuple[dict, dict]:
    program, arch = example
    found = program.decompose(arch)
    for warning in json.loads(found._native.warnings):
        validate("diagnostic", warning)
    return found.document, found.abi()


def test_decompositions_and_abis_of_examples() -> None:
    programs = [*examples(), (carbyne.Program(EXCHANGE), "sm_80")]
    assert len(programs) > 50
    relations, kinds = set(), set()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for decomposition, abi in threads.map(decomposed, programs):
            validate("decomposition", decomposition)
            validate("abi", abi)
            relations |= {certificate["relation"] for certificate in decomposition["certificates"]}
            parameters = (p for kernel in abi["kernels"] for p in kernel["parameters"])
            kinds |= {parameter["kind"] for parameter in parameters}
    assert relations == {"copy", "gemm", "pointwise", "reduction", "part", "exchange"}
    assert kinds == {"pointer", "scalar", "symbol", "tensor_map"}


def test_commands_print_the_same_documents() -> None:
    file, arch = "examples/tile/rearrange.cby", ["--arch", "sm_80"]
    decomposition, abi, kernel = run(
        [
            ["decompose", "--emit", "json", file, *arch],
            ["compile", "--emit", "abi", file, *arch],
            ["compile", "--emit", "abi", file, *arch, "--kernel", "rearrange"],
        ]
    )
    found = carbyne.Program.from_file(ROOT / file).decompose("sm_80")
    assert json.loads(decomposition["stdout"]) == found.document
    assert json.loads(abi["stdout"]) == found.abi()
    validate("abi", json.loads(kernel["stdout"]))


def test_diagnostics_and_pairs() -> None:
    folders = (ROOT / "cli" / "tests" / "filetests", ROOT / "examples")
    files = [str(path) for folder in folders for path in sorted(folder.rglob("*.cby"))]
    commands = [["--message-format", "json", "check", "--pairs", file] for file in files]
    commands.append(["--message-format", "json", "check", "no such file"])
    commands.append(["--message-format", "json", "no such command"])
    kinds, codes, pairs = set(), set(), 0
    for command, answer in zip(commands, run(commands), strict=True):
        assert answer["exit"] in (0, 1, 2), (command, answer)
        for line in filter(lambda line: line.startswith("{"), answer["stderr"].splitlines()):
            diagnostic = json.loads(line)
            validate("diagnostic", diagnostic)
            kinds.add(diagnostic["kind"])
            codes.add(diagnostic["code"])
        for line in answer["stdout"].splitlines():
            validate("pairs", json.loads(line))
            pairs += 1
    assert kinds == {"error", "warning"}
    assert None in codes
    assert len(codes) > 50
    assert pairs > 20


def test_requests_without_a_command() -> None:
    refused = serve([{"id": 1, "arguments": ["serve"]}])
    assert "error" in refused[0]


def test_a_field_that_no_schema_has_is_refused() -> None:
    document = json.loads(run([["--message-format", "json", "check", "no such file"]])[0]["stderr"])
    validate("diagnostic", document)
    with pytest.raises(jsonschema_rs.ValidationError, match="undocumented"):
        validate("diagnostic", {**document, "undocumented": 1})
