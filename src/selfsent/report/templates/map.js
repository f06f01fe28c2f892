// The map of a corpus: dots on a canvas.
// Texts come from anywhere. They are only compared, and put into `textContent`.
document.querySelectorAll(".map").forEach((root) => {
  "use strict";
  const part = (name) => root.querySelector(name);
  const data = JSON.parse(part("script").textContent);
  const head = (i) => data.heads.length ? `${data.heads[i]}\n` : "";
  const texts = data.texts.map((text, i) => (head(i) + text).toLowerCase());
  const [canvas, mark, search, select, count, hits, legend, tip] =
    ["canvas", ".ring", "input", "select", "output", ".hits", ".legend", ".tip"].map(part);
  // The first texts are dots; the others are only searched.
  const dots = [...data.places[0].keys()];
  const radius = dots.length > 5000 ? 1.3 : dots.length > 1500 ? 2 : 3;
  let colour = data.colours[0], group = null, found = null, pointed = -1;

  // Words begin where no letter or digit is before; scripts without spaces have no such place.
  const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
  const matcher = (word) => {
    if (unspaced.test(word)) return (text) => text.includes(word);
    const begins = new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&")}`, "u");
    return (text) => begins.test(text);
  };

  // Far from each other and from grey in OKLab, and visible on light and dark.
  const palette = ("2258e5 da8a11 02b827 be260b 04abee ad27ad 3a7411 f47599 0f6e89 fb4c10 9d7ffc 996a16 2eb090 de297b "
    + "889616 844ae3 895674 5b7ec8 e361e2 b66fac").split(" ");
  const hue = (number) => number === colour.none ? "#8c8c8c" : number === colour.others ? "#b5a58f" : `#${palette[number % palette.length]}`;
  const lit = (i) => (!found || found[i]) && (group === null || colour.of[i] === group);

  const place = (i) => data.places.map((axis) => 8 + axis[i] * (canvas.clientWidth - 16) / 1000);

  const draw = () => {
    const size = canvas.clientWidth, scale = window.devicePixelRatio || 1, context = canvas.getContext("2d");
    const faint = getComputedStyle(root).getPropertyValue("--line"), hues = colour.groups.map((_, each) => hue(each));
    canvas.width = canvas.height = Math.round(size * scale);
    context.scale(scale, scale);
    for (const on of [false, true]) {
      dots.forEach((i) => {
        if (lit(i) !== on) return;
        const [x, y] = place(i), r = on ? radius : radius * 0.7;
        context.fillStyle = on ? hues[colour.of[i]] : faint;
        context.beginPath();
        if (r < 1.5) context.rect(x - r, y - r, 2 * r, 2 * r); else context.arc(x, y, r, 0, 7);
        context.fill();
      });
    }
    label(context, size);
    ring(pointed);
  };

  // Names of the largest groups in the middle of their dots, where no other name is.
  const label = (context, size) => {
    const taken = [], ink = getComputedStyle(root), middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    context.font = `600 12px ${ink.fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = ink.getPropertyValue("--paper");
    context.fillStyle = ink.color;
    colour.groups.forEach((text, number) => {
      if (number === colour.none || number === colour.others || (group !== null && group !== number)) return;
      const own = dots.filter((i) => colour.of[i] === number && lit(i)).map(place);
      if (!own.length) return;
      const name = text.replace(/^\d+: /, ""), said = name.length > 28 ? `${name.slice(0, 27)}…` : name;
      const half = context.measureText(said).width / 2 + 3, y = middle(own.map((at) => at[1]));
      const x = Math.max(half, Math.min(middle(own.map((at) => at[0])), size - half));
      if (taken.some(([left, top, wide]) => Math.abs(left - x) < wide + half && Math.abs(top - y) < 16)) return;
      taken.push([x, y, half]);
      context.strokeText(said, x, y);
      context.fillText(said, x, y);
    });
  };

  // The ring around a dot is an element of its own: nothing is drawn again while the pointer moves.
  const ring = (i) => {
    pointed = i;
    mark.hidden = i < 0;
    if (i >= 0) [mark.style.left, mark.style.top] = place(i).map((at) => `${at}px`);
  };

  const point = (i) => {
    ring(i);
    tip.hidden = i < 0;
    if (i >= 0) tip.textContent = head(i) + data.texts[i];
  };

  const nearest = (event) => {
    const size = canvas.clientWidth - 16, [xs, ys] = data.places;
    let best = -1, least = 15 * 15;
    dots.forEach((i) => {
      const x = 8 + xs[i] * size / 1000 - event.offsetX, y = 8 + ys[i] * size / 1000 - event.offsetY;
      if (x * x + y * y < least && lit(i)) { best = i; least = x * x + y * y; }
    });
    return best;
  };

  const look = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean).map(matcher);
    found = wanted.length ? texts.map((text) => wanted.every((holds) => holds(text))) : null;
    const rows = found ? texts.flatMap((_, i) => lit(i) ? [i] : []) : [];
    count.textContent = found ? `${rows.length} of ${texts.length} match` : "";
    hits.replaceChildren(...rows.slice(0, 5).map((i) => {
      const line = document.createElement("li");
      line.textContent = head(i) + data.texts[i];
      line.dir = "auto";
      line.addEventListener("pointerenter", () => ring(i < dots.length ? i : -1));
      return line;
    }));
    pointed = -1;
    tip.hidden = true;
    draw();
  };

  const name = () => legend.replaceChildren(...colour.groups.map((text, number) => {
    const button = document.createElement("button"), mark = document.createElement("i");
    mark.style.background = hue(number);
    button.append(mark, document.createTextNode(`${text} (${colour.sizes[number].toLocaleString("en")})`));
    button.type = "button";
    button.dir = "auto";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      group = group === number ? null : number;
      [...legend.children].forEach((each, place) => each.setAttribute("aria-pressed", String(place === group)));
      look();
    });
    return button;
  }));

  const move = (event) => {
    point(nearest(event));
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, room))}px`;
    tip.style.top = `${below ? event.clientY + 16 : Math.max(8, event.clientY - tip.offsetHeight - 16)}px`;
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") point(-1); });
  window.addEventListener("scroll", () => point(-1), { passive: true });
  search.addEventListener("input", look);
  select.addEventListener("change", () => { colour = data.colours[select.selectedIndex]; group = null; name(); look(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(draw).observe(canvas);
  name();
});
