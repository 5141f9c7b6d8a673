"""Checks on a GPU: decomposes, runs and compares each example and each problem under compute-sanitizer.

This is the mode `--card` of `bench/examples.py`, which documents the command line. The steps for a program are:

- decompose it for the GPU's architecture, and compile the kernels of the result;
- run it with integer and with random inputs under `--tool memcheck`; `carbyne run` compares the results;
- run it with integers under `--tool racecheck`, if its kernels take at most so many multiply-adds (or bytes).

`bench/racecheck_known.txt` lists pairs of accesses that racecheck reports in error. Every other pair is a fault. Faults are also a
program that does not decompose, a wrong element, an output that cannot be compared, an error of memcheck, and a run that takes too
long.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from choice import problems

ROOT = Path(__file__).resolve().parent.parent
KNOWN = Path(__file__).with_name("racecheck_known.txt")
COLUMNS = ("ints", "random", "memcheck", "racecheck")
# The exit code of compute-sanitizer for a right program with findings.
FOUND = 86


def programs():
    """The name and the text of each example and each problem."""
    for folder in ("examples", "examples/tile"):
        for file in sorted((ROOT / folder).glob("*.cby")):
            yield str(file.relative_to(ROOT / "examples")), file.read_text()
    for half, name, kernel in problems():
        yield f"{half}: {name}", f"carbyne 2\n{kernel}\n"


def card():
    """The name, driver and architecture of the first GPU."""
    asked = ["nvidia-smi", "--id=0", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    name, driver, capability = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip().split(", ")
    arch = "sm_" + capability.replace(".", "")
    return name, driver, "sm_90a" if arch == "sm_90" else arch


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


class Known:
    """Explained pairs of racecheck. The fields of a line are an example, two accesses and a reason, separated by tabs.

    An access is `Read KERNEL+0x3cc0`, or `Write KERNEL+0x16c0..0x33f0` for all accesses between these offsets.
    """

    def __init__(self, text):
        self.pairs = []
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                example, first, second, _reason = line.split("\t")
                self.pairs.append((example, self.access(first), self.access(second)))

    @staticmethod
    def access(text):
        kind, kernel, first, last = re.fullmatch(r"(\w+) (\w+)\+(0x[0-9a-f]+)(?:\.\.(0x[0-9a-f]+))?", text).groups()
        return kind, kernel, int(first, 16), int(last or first, 16)

    def explains(self, example, pair):
        def is_one(access, listed):
            kind, kernel, at = access
            return (kind, kernel) == listed[:2] and listed[2] <= at <= listed[3]

        def are(a, b):
            return is_one(pair[0], a) and is_one(pair[1], b)

        return any(example == name and (are(a, b) or are(b, a)) for name, a, b in self.pairs)


ACCESS = re.compile(r"\b(Read|Write|Atomic) access at (.*?)(?: \[\d+ hazards?\])?$")


def access(kind, place):
    """Kind, kernel and offset: `gemm+0x3cc0`, `gemm(float *)+0x3cc0 in a.cu:7` or `0x3cc0 in gemm`."""
    found = re.search(r"(\w+)(?:\(.*\))?\+(0x[0-9a-f]+)", place)
    if found:
        return kind, found[1], int(found[2], 16)
    found = re.search(r"(0x[0-9a-f]+) in (?:.*?:)?(\w+)", place)
    return (kind, found[2], int(found[1], 16)) if found else (kind, place, -1)


def races(log):
    """The pairs that racecheck reports: an access, followed by the accesses that are not ordered with it."""
    pairs, first = set(), None
    for line in log.splitlines():
        found = ACCESS.search(line.strip())
        if found and "Race reported between" in line:
            first = access(*found.groups())
        elif found and first:
            pairs.add((first, access(*found.groups())))
    return pairs


def shown(pair):
    return " and ".join(f"{kind} {kernel}+{at:#x}" for kind, kernel, at in pair)


def last_line(text):
    """A short form of an error message: the code and the first words."""
    lines = [line.strip(" ×│") for line in text.splitlines() if line.strip(" ×│=")]
    return " ".join(lines[:2])[:160] or "no message"


class Checker:
    def __init__(self, args, arch, known):
        self.args, self.arch, self.known = args, arch, known
        self.cards = threading.Semaphore(args.gpu_jobs)

    def run(self, command, seconds, **more):
        """Exit code, standard output and standard error; the exit code is None after a timeout."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, **more)
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            return None, "", f"not done after {seconds} s"

    def checked(self, name, text):
        """The results of a program: a cell for each column, and the faults."""
        begun = time.monotonic()
        row = {"name": name, "arch": self.arch, "faults": []} | dict.fromkeys(COLUMNS, "–")
        with tempfile.TemporaryDirectory() as folder:
            self.check(row, Path(folder), text)
        row["seconds"] = round(time.monotonic() - begun, 1)
        return row

    def check(self, row, folder, text):
        source, file = folder / "source.cby", folder / "kernel.cby"
        source.write_text(text)
        program, arch = self.args.program, self.arch
        # Imported sub-specs are in the folder of the examples.
        allowed = ["--allow-import", str(ROOT / "examples")]
        made = self.run([program, "decompose", str(source), "--arch", arch, "-o", str(file), *allowed], self.args.limit)
        if made[0] != 0:
            return self.fault(row, "ints", "not decomposed", last_line(made[2]))
        # If the text has symbols, use the sizes of the tests.
        said = re.search(r"^// simulate: (.*)$", text, re.M)
        sizes = re.findall(r"--sym\s+\S+", said[1]) if said else []
        sizes = [word for size in sizes for word in size.split()]
        built = self.built(folder, file)
        if built:
            return self.fault(row, "ints", "not compiled", built)
        reports = self.compared(row, folder, file, "ints", ["--ints", *sizes])
        self.compared(row, folder, file, "random", ["--seed", str(self.args.seed), *sizes])
        work = sum(max(kernel["multiply_adds"], kernel["bytes_moved"]) for kernel in reports)
        if reports and work <= self.args.racecheck_work:
            self.raced(row, folder, file, sizes)
        elif reports:
            row["racecheck"] = "too much"

    def built(self, folder, file):
        """Compiles the kernels beside the text. Returns the error, if any."""
        command = [self.args.program, "compile", str(file), "--arch", self.arch]
        code, out, err = self.run([*command, "--emit", "abi"], self.args.limit)
        if code != 0:
            return last_line(err)
        for kernel in json.loads(out)["kernels"]:
            name = kernel["spec"]
            to = folder / f"{kernel['kernel']}.{self.arch}.cubin"
            code, _, err = self.run([*command, "--kernel", name, "--emit", "cubin", "-o", str(to)], self.args.limit)
            if code != 0:
                return last_line(err)
        return None

    def sanitized(self, folder, file, tool, inputs):
        """Runs a program under a tool. Returns the exit code, the messages of carbyne, and those of the tool."""
        log = folder / f"{tool}{inputs[0]}.log"
        command = [self.args.sanitizer, "--tool", tool, "--log-file", str(log), "--print-limit", "10000"]
        command += ["--error-exitcode", str(FOUND)]
        # carbyne itself reports errors of the driver.
        command += ["--report-api-errors", "no"] if tool == "memcheck" else ["--racecheck-report", "analysis"]
        command += [self.args.program, "run", str(file), "--arch", self.arch, "--prebuilt", str(folder)]
        command += ["--message-format", "json", "--repeat", "0", "--timeout", str(self.args.limit), *inputs]
        with self.cards:
            code, _, err = self.run(command, self.args.limit)
        return code, err, log.read_text(errors="replace") if log.exists() else ""

    def compared(self, row, folder, file, column, inputs):
        """Runs a program under memcheck. Returns the reports of its kernels."""
        code, said, log = self.sanitized(folder, file, "memcheck", inputs)
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        reports = [line for line in lines if line.get("kind") == "report"]
        others = [f"{line.get('code', '')} {line.get('message', '')}".strip() for line in lines if line.get("kind") != "report"]
        if code is None:
            self.fault(row, column, "too long", said)
        elif code not in (0, FOUND) or not reports or not all(r["right"] for r in reports):
            self.fault(row, column, "wrong", " ".join(others)[:300] or last_line(said))
        elif not any(r["elements_compared"] for r in reports):
            self.fault(row, column, "not compared", "nothing of its outputs can be compared")
        else:
            row[column] = "right"
        self.memory(row, column, log)
        return reports if row[column] == "right" else []

    def memory(self, row, column, log):
        found = re.search(r"ERROR SUMMARY: (\d+) errors?", log)
        if not found:
            return self.fault(row, "memcheck", "no summary", f"memcheck with {column} says: {last_line(log)}")
        n = int(found[1])
        if n:
            self.fault(row, "memcheck", f"{n} errors", f"memcheck with {column}: {last_line(log.partition('Invalid')[2] or log)}")
        elif row["memcheck"] == "–":
            row["memcheck"] = "0"

    def raced(self, row, folder, file, sizes):
        code, said, log = self.sanitized(folder, file, "racecheck", ["--ints", *sizes])
        found = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", log)
        if code is None or not found:
            return self.fault(row, "racecheck", "no summary", last_line(log or said))
        if code not in (0, FOUND):
            return self.fault(row, "racecheck", "wrong", last_line(said))
        pairs = races(log)
        example = row["name"].removesuffix(".cby")
        new = sorted(shown(p) for p in pairs if not self.known.explains(example, p))
        if new:
            self.fault(row, "racecheck", f"{len(new)} new", "pairs: " + "; ".join(new))
        elif int(found[1]) and not pairs:
            self.fault(row, "racecheck", "unread", f"{found[0]}, and no pair is read in it")
        else:
            row["racecheck"] = f"{len(pairs)} known" if pairs else "0"
        if new and self.args.logs:
            Path(self.args.logs).mkdir(parents=True, exist_ok=True)
            (Path(self.args.logs) / (re.sub(r"\W+", "_", row["name"]) + ".racecheck")).write_text(log)

    @staticmethod
    def fault(row, column, cell, what):
        row[column] = cell
        row["faults"].append(f"{column}: {what}")


def read(files):
    """The rows in files of results; for each program the last row."""
    rows = {}
    for file in files:
        for line in Path(file).read_text().splitlines():
            row = json.loads(line)
            rows[row["name"]] = row
    return rows


def page(rows, names, out):
    """Prints the page. Returns whether everything is right."""
    done = [rows[name] for name in names if name in rows]
    missing = [name for name in names if name not in rows]
    said = lambda key: ", ".join(sorted({str(row[key]) for row in done})) or "none"
    commits = said("commit")
    print("# Examples and problems on a card\n", file=out)
    print(f"Commit {commits}, {said('card')}, driver {said('driver')}, {said('arch')}, {said('date')}. `python3 bench/examples.py", file=out)
    print("target/release/carbyne --card` makes this page; `bench/card.py` documents the steps and the faults. `ints` and `random` are", file=out)
    print("inputs; the results of each kernel are compared with its meaning. `memcheck` lists errors of both runs, `racecheck` pairs of", file=out)
    print("accesses; `bench/racecheck_known.txt` explains the known ones. Programs with too much work do not run under racecheck, which", file=out)
    print("is a hundred times slower.\n", file=out)
    print(f"| program | {' | '.join(COLUMNS)} |\n|{' --- |' * (1 + len(COLUMNS))}", file=out)
    for row in done:
        print(f"| {row['name']} | " + " | ".join(row[c] for c in COLUMNS) + " |", file=out)
    faults = [(row["name"], fault) for row in done for fault in row["faults"]]
    if faults or missing:
        print("\n## Faults\n", file=out)
        for name, fault in faults:
            print(f"- {name}: {fault}", file=out)
        for name in missing:
            print(f"- {name}: not run", file=out)
    right = sum(not row["faults"] for row in done)
    raced = sum(row["racecheck"] == "0" or row["racecheck"].endswith("known") for row in done)
    known = sum(int(row["racecheck"].split()[0]) for row in done if row["racecheck"].endswith("known"))
    mixed = len({row["commit"] for row in done}) > 1
    print(
        f"\n{right} of {len(names)} programs are right, {len(faults)} faults, {len(missing)} not run; {raced} without an unexplained pair"
        f" under racecheck, {known} known pairs." + (" Results are of several commits." if mixed else ""),
        file=out,
    )
    return not faults and not missing and not mixed


def main(args):
    """Checks the programs of the command line, or merges results. Returns the exit code."""
    todo = list(programs())
    names = [name for name, _ in todo]
    if args.only:
        todo = [(name, text) for name, text in todo if re.search(args.only, name)]
        names = [name for name, _ in todo]
    if args.merge:
        return 0 if page(read(args.merge), names, sys.stdout) else 1
    if args.part:
        i, n = map(int, args.part.split("/"))
        todo = todo[i - 1 :: n]
        names = [name for name, _ in todo]
    name, driver, arch = card()
    facts = {"commit": args.commit or commit(), "card": name, "driver": driver, "date": datetime.date.today().isoformat()}
    results = Path(args.results) if args.results else None
    rows = {}
    if results and results.exists():
        rows = {n: row for n, row in read([results]).items() if row["commit"] == facts["commit"]}
    checker = Checker(args, arch, Known(KNOWN.read_text()))
    begun = time.monotonic()
    in_time = lambda: not args.budget or time.monotonic() - begun < args.budget
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        # Programs that would begin too late are left to another call.
        started = [pool.submit(lambda n, t: checker.checked(n, t) if in_time() else None, n, t) for n, t in todo if n not in rows]
        for job in as_completed(started):
            row = job.result()
            if row is None:
                continue
            rows[row["name"]] = row = row | facts
            if results:
                with results.open("a") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{row['name']}: " + ", ".join(f"{c} {row[c]}" for c in COLUMNS) + f", {row['seconds']} s", file=sys.stderr)
            for fault in row["faults"]:
                print(f"  {fault}", file=sys.stderr)
            sys.stderr.flush()
    return 0 if page(rows, names, sys.stdout) else 1
