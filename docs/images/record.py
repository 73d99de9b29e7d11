"""Records a command as an animated SVG, from what it really shows: record.py OUT.svg COLUMNS LINES COMMAND...

tmux runs the command; its screen is read ten times a second, and each screen that differs from the one before becomes a frame.
The picture plays at the speed of the run and starts again. Needs tmux.
"""
import html
import re
import subprocess
import sys
import time

COLORS = {31: "#f0776c", 32: "#6cc788", 33: "#e0af58", 34: "#74a8f0", 35: "#c58fe0", 36: "#53bfc0", 90: "#8a93a0"}
WIDTH, HEIGHT, MARGIN, LAST = 8.4, 18, 14, 4.0  # of a character and the edge in pixels; seconds that the last frame stays


def record(columns, lines, command):
    """Runs a command; returns [(seconds, screen)] and how long it took."""
    tmux = ["tmux", "-L", f"record-{time.time_ns()}"]
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "sh", "-c", 'sleep 0.5; exec "$@"', "sh", *command], check=True)
    subprocess.run([*tmux, "set", "-g", "remain-on-exit", "on"], check=True)
    frames, began = [], None
    while True:
        screen = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip()
        screen = re.sub(r"\n*[^\n]*Pane is dead[^\n]*", "", screen)
        now = time.monotonic()
        if screen and began is None:
            began = now
        if screen and (not frames or screen != frames[-1][1]):
            frames.append((now - began, screen))
        dead = subprocess.run([*tmux, "display", "-p", "#{pane_dead}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        if dead == "1":
            subprocess.run([*tmux, "kill-server"], check=True)
            return frames, now - began
        time.sleep(0.1)


def spans(line):
    """Turns a line with colors into tspans."""
    out, style = [], {}
    for text, codes in re.findall(r"([^\x1b]+)|\x1b\[([0-9;]*)m", line):
        if text:
            out.append("<tspan" + "".join(f' {k}="{v}"' for k, v in style.items()) + f">{html.escape(text)}</tspan>")
            continue
        for code in map(int, codes.split(";") if codes else [0]):
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["opacity"] = "0.65"
            elif code in COLORS:
                style["fill"] = COLORS[code]
            elif code == 39:
                style.pop("fill", None)
    return "".join(out)


def svg(frames, seconds, columns, lines, command):
    """Draws the frames, one shown at a time."""
    whole = seconds + LAST
    width, height = columns * WIDTH + 2 * MARGIN, (lines + 1) * HEIGHT + 2 * MARGIN
    prompt = " ".join([command[0].rsplit("/", 1)[-1], *command[1:]])
    style, body = [], []
    for i, (at, screen) in enumerate(frames):
        end = frames[i + 1][0] if i + 1 < len(frames) else whole
        style.append(f"@keyframes f{i}{{0%{{visibility:hidden}}{at / whole:.3%}{{visibility:visible}}{end / whole:.3%}{{visibility:hidden}}}}"
                     f"#f{i}{{visibility:hidden;animation:f{i} {whole:.2f}s step-end infinite}}")
        rows = "".join(f'<text x="{MARGIN}" y="{MARGIN + (n + 2) * HEIGHT - 5}">{spans(row)}</text>' for n, row in enumerate(screen.split("\n")) if row.strip())
        body.append(f'<g id="f{i}">{rows}</g>')
    still = f"@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}#f{len(frames) - 1}{{visibility:visible}}}}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img">'
            f"<title>{html.escape(prompt)}, as it ran</title>"
            f'<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d8dee6;white-space:pre}}{"".join(style)}{still}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="#1b2027"/>'
            f'<text x="{MARGIN}" y="{MARGIN + HEIGHT - 5}"><tspan fill="#6cc788">$</tspan> {html.escape(prompt)}</text>{"".join(body)}</svg>\n')


out, columns, lines, command = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
with open(out, "w") as f:
    f.write(svg(*record(columns, lines, command), columns, lines, command))
