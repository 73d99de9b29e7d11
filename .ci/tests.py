"""Shows the output of `go test -json` as people read it. A test that was skipped is named at the end of .ci/run if its reason
begins with NOT TESTED: for want of a machine, of a program that is not free, or of somebody who asks for it. Any other reason
is none on a machine that may install what it needs: the run fails."""

import collections
import json
import os
import sys

said, good, bad = collections.defaultdict(str), set(), []
for line in sys.stdin:
    e = json.loads(line)
    test = e.get("Package"), e.get("Test")
    output = e.get("Output", "")
    if test[1] is None:
        if not output.startswith(("PASS", "?")):
            print(output, end="", flush=True)
        continue
    said[test] += output
    if e["Action"] == "fail":
        print(said[test], end="")
    if e["Action"] == "skip":
        reason = said[test].partition("NOT TESTED: ")[2].strip().splitlines()
        good.add(reason[0]) if reason else bad.append(said[test])

for reason in sorted(good):
    print("!! SKIPPED:", reason)
    if "CI_SKIPPED" in os.environ:
        print(reason, file=open(os.environ["CI_SKIPPED"], "a"))
if bad:
    sys.exit("skipped, and nothing here is in their way:\n" + "".join(bad))
