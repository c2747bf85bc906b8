"""Draws the tray icons: a stage curtain with the state on it, once for each size on that size's pixel grid.

A colour icon has a light curtain with a dark edge, so that it shows on every panel. A mono icon is one colour on nothing, for
systems that tint the icons of their panel and for high contrast.
"""

SIZES = (16, 22, 24, 32, 44)
STATES = ("protecting", "part", "open", "asking", "lockdown", "degraded")
KINDS = ("colour", "mono")
CLOTH, EDGE, ASK, LOCK, BAD = "#f4f4f6", "#23262e", "#f5a524", "#d7263d", "#f5a524"


def scaled(size):
    """Returns a function from parts of 24 to whole pixels."""
    return lambda part: max(1, int(part * size / 24 + 0.5))


def curtain(size, state):
    """Returns the outline of the curtain's cloth, and of its rod."""
    px = scaled(size)
    left, right, top, bottom = px(2), size - px(2), px(4), size - px(3)
    rod = f'<rect x="{px(1)}" y="{px(1)}" width="{size - 2 * px(1)}" height="{max(2, px(3))}" rx="{max(1, px(1))}"/>'
    wave = max(1, px(1))
    if state == "open":
        # Drawn aside: both halves hang at the edges.
        width, waist = px(6), px(4)
        half = lambda edge, way: (
            f'<path d="M{edge} {top}H{edge + way * width}Q{edge + way * width} {(top + bottom) / 2} {edge + way * waist} {bottom}'
            f'Q{edge + way * waist / 2} {bottom + wave} {edge} {bottom}Z"/>')
        return half(left, 1) + half(right, -1), rod
    if state != "degraded":
        middle = (left + right) / 2
        hem = f"Q{(middle + right) / 2} {bottom + wave} {middle} {bottom} Q{(left + middle) / 2} {bottom + wave} {left} {bottom}"
        return f'<path d="M{left} {top}H{right}V{bottom}{hem}Z"/>', rod
    # Torn: both halves end in teeth, and do not meet.
    half, gap, high = (left + right) / 2, px(2) / 2, (bottom - top) / 4
    teeth = lambda edge, way: "".join(
        f"L{edge + way * (px(3) if n % 2 else 0)} {top + high * n}" for n in range(5))
    return (
        f'<path d="M{left} {top}{teeth(half - gap - px(1), -1)}L{left} {bottom}Z"/>'
        f'<path d="M{right} {top}{teeth(half + gap + px(1), 1)}L{right} {bottom}Z"/>'
    ), rod


def keyhole(size):
    px = scaled(size)
    x, y, r = size / 2, px(10), max(1.5, px(2.5))
    return f'<path d="M{x - r * 0.6} {y + r * 0.6}L{x - r} {y + px(7)}H{x + r}L{x + r * 0.6} {y + r * 0.6}Z"/><circle cx="{x}" cy="{y}" r="{r}"/>'


def badge(size, state):
    """Returns the shape of a state's badge, and the sign on it."""
    px = scaled(size)
    if state == "asking":
        r = px(6.5)
        x, y = size - r, size - r
        sign = (
            f'<path d="M{x - r * 0.34} {y - r * 0.22}A{r * 0.34} {r * 0.34} 0 1 1 {x + r * 0.12} {y + r * 0.1}L{x} {y + r * 0.3}" '
            f'fill="none" stroke-width="{max(1.4, r * 0.28)}" stroke-linecap="round" stroke="SIGN"/>'
            f'<circle cx="{x}" cy="{y + r * 0.64}" r="{max(0.8, r * 0.17)}" fill="SIGN"/>'
        )
        return f'<circle cx="{x}" cy="{y}" r="{r}"/>', sign
    if state == "lockdown":
        w, h = px(12), px(8)
        x, y = size - w, size - h
        ring = f'<path d="M{x + w * 0.25} {y}V{y - h * 0.25}A{w * 0.25} {w * 0.25} 0 0 1 {x + w * 0.75} {y - h * 0.25}V{y}" fill="none" stroke="SHAPE" stroke-width="{px(2)}"/>'
        return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{px(1.5)}"/>', ring
    w = px(13)
    x, y = size - w, size - w
    sign = (
        f'<path d="M{x + w / 2} {y + w * 0.4}V{y + w * 0.65}" stroke="SIGN" stroke-width="{max(1.4, w * 0.13)}" stroke-linecap="round"/>'
        f'<circle cx="{x + w / 2}" cy="{y + w * 0.83}" r="{max(0.8, w * 0.075)}" fill="SIGN"/>'
    )
    return f'<path d="M{x + w / 2} {y}L{x + w} {y + w}H{x}Z"/>', sign


def drawing(state, kind, size):
    """Returns the SVG of an icon."""
    cloth, rod = curtain(size, state)
    line = max(1, size / 20)
    colour = kind == "colour"
    fill, edge = (CLOTH, EDGE) if colour else ("#000000", "none")
    outline = f'fill="{fill}" stroke="{edge}" stroke-width="{line}" stroke-linejoin="round"'
    parts = [f"<g {outline}>{cloth}{rod}</g>"]
    holes = []
    if state == "protecting":
        if colour:
            parts.append(f'<g fill="{EDGE}">{keyhole(size)}</g>')
        else:
            holes.append(keyhole(size))
    elif state != "open":
        shape, sign = badge(size, state)
        paint = {"part": BAD, "asking": ASK, "lockdown": LOCK, "degraded": BAD}[state]
        if colour:
            sign = sign.replace("SIGN", EDGE).replace("SHAPE", EDGE)
            parts.append(f'<g fill="{paint}" stroke="{EDGE}" stroke-width="{line}" stroke-linejoin="round">{sign if state == "lockdown" else ""}{shape}</g>')
            parts.append("" if state == "lockdown" else f"<g>{sign}</g>")
        else:
            # The badge is cut out of the curtain with a gap around it, and its sign out of the badge.
            gap = f'<g fill="black" stroke="black" stroke-width="{2 * line + 1}">{shape}{sign.replace("SHAPE", "black").replace("SIGN", "none") if state == "lockdown" else ""}</g>'
            holes.append(gap)
            cut = sign.replace("SIGN", "black") if state != "lockdown" else ""
            ring = sign.replace("SHAPE", "black") if state == "lockdown" else ""
            mask = f'<mask id="sign" maskUnits="userSpaceOnUse" x="0" y="0" width="{size}" height="{size}"><rect width="{size}" height="{size}" fill="white"/>{cut}</mask>'
            parts.append(f'{mask}<g mask="url(#sign)">{shape}</g>{ring}')
    if holes:
        mask = f'<mask id="hole" maskUnits="userSpaceOnUse" x="0" y="0" width="{size}" height="{size}"><rect width="{size}" height="{size}" fill="white"/>{"".join(holes)}</mask>'
        parts[0] = f'{mask}<g mask="url(#hole)">{parts[0]}</g>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}">{"".join(parts)}</svg>\n'
