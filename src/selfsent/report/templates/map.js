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
  const radius = texts.length > 5000 ? 1.3 : texts.length > 1500 ? 2 : 3;
  let colour = data.colours[0], group = null, found = null, pointed = -1;

  // Words begin where no letter or digit is before; scripts without spaces have no such place.
  const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
  const matcher = (word) => {
    if (unspaced.test(word)) return (text) => text.includes(word);
    const begins = new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&")}`, "u");
    return (text) => begins.test(text);
  };

  const hue = (number) => number === colour.none ? "#8c8c8c" : `oklch(${number % 2 ? 0.7 : 0.58} 0.15 ${(250 + number * 137.5) % 360})`;
  const lit = (i) => (!found || found[i]) && (group === null || colour.of[i] === group);

  const place = (i) => data.places.map((axis) => 8 + axis[i] * (canvas.clientWidth - 16) / 1000);

  const draw = () => {
    const size = canvas.clientWidth, scale = window.devicePixelRatio || 1, context = canvas.getContext("2d");
    const faint = getComputedStyle(root).getPropertyValue("--line"), hues = colour.groups.map((_, each) => hue(each));
    canvas.width = canvas.height = Math.round(size * scale);
    context.scale(scale, scale);
    for (const on of [false, true]) {
      texts.forEach((_, i) => {
        if (lit(i) !== on) return;
        const [x, y] = place(i), r = on ? radius : radius * 0.7;
        context.fillStyle = on ? hues[colour.of[i]] : faint;
        context.beginPath();
        if (r < 1.5) context.rect(x - r, y - r, 2 * r, 2 * r); else context.arc(x, y, r, 0, 7);
        context.fill();
      });
    }
    ring(pointed);
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
    texts.forEach((_, i) => {
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
      line.addEventListener("pointerenter", () => ring(i));
      return line;
    }));
    pointed = -1;
    tip.hidden = true;
    draw();
  };

  const name = () => legend.replaceChildren(...colour.groups.map((text, number) => {
    const button = document.createElement("button"), mark = document.createElement("i");
    mark.style.background = hue(number);
    button.append(mark, document.createTextNode(`${text} (${colour.of.filter((own) => own === number).length})`));
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
