# Repeats a recording: python big.py IN.json.gz OUT.json COPIES
import gzip, json, re, sys
d = json.load(gzip.open(sys.argv[1]))
ev = d["traceEvents"]; n = int(sys.argv[3])
ts = [float(e["ts"]) for e in ev if e.get("ph") == "X" and "ts" in e and e.get("cat") != "Trace"]
lo = min(ts); hi = max(float(e["ts"]) + float(e.get("dur", 0)) for e in ev if e.get("ph") == "X")
width = int(hi - lo) + 1000
steps = len({e["name"] for e in ev if e.get("name", "").startswith("ProfilerStep#")})
with open(sys.argv[2], "w") as f:
    head = {k: v for k, v in d.items() if k != "traceEvents"}
    f.write(json.dumps(head)[:-1] + ',"traceEvents":[\n')
    for c in range(n):
        for i, e in enumerate(ev):
            o = dict(e)
            if "ts" in o: o["ts"] = o["ts"] + c * width
            if o.get("name", "").startswith("ProfilerStep#"): o["name"] = "ProfilerStep#%d" % (int(o["name"][13:]) + c * 1000)
            if "args" in o and isinstance(o["args"], dict):
                a = dict(o["args"])
                for k in ("correlation", "External id", "Record function id"):
                    if isinstance(a.get(k), int) and a[k]: a[k] += c * 10_000_000
                o["args"] = a
            if "id" in o and isinstance(o["id"], int): o["id"] += c * 10_000_000
            f.write((",\n" if c + i else "") + json.dumps(o))
    f.write("]}\n")
