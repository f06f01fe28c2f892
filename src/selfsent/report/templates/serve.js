// The search page. Texts come from anywhere: they only go into `textContent`, values of fields, and JSON.
(() => {
  "use strict";
  const part = (name) => document.querySelector(name);
  const [ask, query, filters, fields, count, said, hits, secret] =
    ["#ask", "#query", "#filters", ".fields", "#filters summary span", "#said", "#hits", "#token"].map(part);
  const positions = ["row", "sentence", "passage", "repeats"], numbers = ["score", "cosine", "words"];
  const answers = { y: true, n: false, u: null };
  const seen = {};
  let asked = 0, token = sessionStorage.getItem("token"), judging = Promise.resolve();

  const make = (name, text, properties) => Object.assign(document.createElement(name), { textContent: text ?? "" }, properties);

  const say = (text, wrong = false) => {
    said.textContent = text;
    said.classList.toggle("wrong", wrong);
  };

  const locked = (is) => {
    secret.hidden = !is;
    ask.hidden = is;
    if (is) secret.querySelector("input").focus();
  };

  const fetched = async (path, body) => {
    const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const got = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
    if (got.status === 401) locked(true);
    const answer = await got.json();
    if (!got.ok) throw new Error(answer.error.message);
    return answer;
  };

  const inputs = () => [...fields.querySelectorAll("input, select")];
  // "sales", "sales,support" or ">=2024-05"; a comma within a value stands in quotes, as in a CSV file.
  const where = () => inputs().filter((input) => input.value.trim())
    .map((input) => `${input.name}${/^(!=|[<>]=?|=)/.test(input.value.trim()) ? "" : "="}${input.value.trim()}`);
  const quoted = (value) => /^[\s"<>=!]|[,\n\r]|\s$/.test(value) ? `="${value.replaceAll('"', '""')}"` : value;

  // A column with few values is a list to pick from.
  const choice = (name, values) => {
    const label = make("label", name), select = make("select", "", { name, dir: "auto" });
    select.append(make("option", "any", { value: "" }), ...values.map((value) =>
      make("option", String(value), { value: quoted(String(value)) })));
    select.addEventListener("change", () => { if (query.value.trim()) search(); });
    label.append(select);
    seen[name] = null;
    return label;
  };

  const field = (name) => {
    const label = make("label", name), input = make("input", "", { name, dir: "auto", autocomplete: "off" });
    const list = make("datalist", "", { id: `values-${fields.children.length}` });
    input.placeholder = "any";
    input.setAttribute("list", list.id);
    input.addEventListener("change", () => { if (query.value.trim()) search(); });
    label.append(input, list);
    seen[name] = list;
    return label;
  };

  // Values that hits had are offered in the filters: the index is not read for them.
  const offer = (name, value) => {
    const list = seen[name];
    if (list && list.children.length < 100 && ![...list.children].some((one) => one.value === value)) {
      list.append(make("option", "", { value }));
    }
  };

  // Judgements are sent one after the other: of two about one text the last counts.
  const judge = (line, relevant) => { judging = judging.then(() => judgeNow(line, relevant)); };
  // A judgement goes to all hits of one text. What is pressed already is taken back by pressing it again.
  const judgeNow = async (line, relevant) => {
    const { query, id } = line.judged;
    try {
      const told = await fetched("judge", { query, id, relevant });
      for (const each of hits.children) {
        if (each.judged?.query === query && each.judged.id === id) press(each, relevant);
      }
      say(`${told.judged.toLocaleString("en")} judged; queries with an answer: ${told.answered.toLocaleString("en")}`);
    } catch (error) {
      say(error.message, true);
    }
  };
  const press = (line, relevant) => {
    line.judged.relevant = relevant;
    line.querySelectorAll(".judge button").forEach((each) => each.setAttribute("aria-pressed", each.value === String(relevant)));
  };
  const choices = (line) => {
    const group = make("div", "", { className: "judge" });
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Does this text answer the query?");
    for (const [value, text] of [[true, "answers"], [false, "no answer"]]) {
      const button = make("button", text, { type: "button", value: String(value) });
      button.addEventListener("click", () => judge(line, line.judged.relevant === value ? null : value));
      group.append(button);
    }
    return group;
  };

  const shown = (hit, judged, asked) => {
    const line = make("li", "", { tabIndex: -1 }), about = make("div", "", { className: "about" });
    about.append(make("b", hit.score.toFixed(3), { title: `cosine ${hit.cosine.toFixed(3)}, words ${hit.words.toFixed(3)}` }));
    for (const [name, value] of Object.entries(hit)) {
      if (name === "parts" || numbers.includes(name) || value === null) continue;
      if (positions.includes(name) && (name !== "repeats" || !value)) continue;
      if (name === "repeats") about.append(make("span", `and ${value} more like it`, { className: "soft" }));
      else if (name in seen) {
        const chip = make("button", `${name}: ${value}`, { type: "button", title: "only these", dir: "auto" });
        chip.addEventListener("click", () => {
          inputs().find((input) => input.name === name).value = quoted(String(value));
          filters.open = true;
          search();
        });
        about.append(chip);
        offer(name, quoted(String(value)));
      }
    }
    const text = make("p", "", { className: "body short", dir: "auto" });
    (hit.parts ?? []).forEach((piece, place) => text.append(place % 2 ? make("mark", piece) : piece));
    line.append(about, text);
    if (judged?.id) {
      line.judged = { query: asked, id: judged.id };
      line.append(choices(line));
      press(line, judged.relevant);
    }
    return line;
  };

  // A long text is folded, and then begins shortly before its first marked word.
  const fold = (line) => {
    const text = line.querySelector(".body"), lead = text.firstChild, whole = lead?.data ?? "";
    if (text.scrollHeight <= text.clientHeight + 1) return;
    const more = make("button", "", { type: "button", className: "more" });
    const show = (short) => {
      more.textContent = short ? "more" : "less";
      lead.data = short && whole.length > 250 && text.children.length ? `… ${whole.slice(-80)}` : whole;
    };
    more.addEventListener("click", () => show(text.classList.toggle("short")));
    show(true);
    line.append(more);
  };

  const search = async () => {
    const mine = ++asked, text = query.value.trim(), conditions = where();
    count.textContent = conditions.length ? `(${conditions.length})` : "";
    if (!text) return;
    history.replaceState(null, "", `#${new URLSearchParams([["q", text], ...conditions.map((one) => ["where", one])])}`);
    say("…");
    try {
      const body = { query: text, top: 20, mark: true, ...(conditions.length ? { where: conditions } : {}) };
      const answer = await fetched("search", body);
      if (mine !== asked) return;
      hits.replaceChildren(...answer.hits.map((hit, place) => shown(hit, answer.judged?.[place], text)));
      [...hits.children].forEach(fold);
      say(answer.hits.length ? `${answer.hits.length} nearest texts, best first` : answer.message ?? "nothing is left by these filters");
    } catch (error) {
      if (mine === asked) say(error.message, true);
    }
  };

  const start = async () => {
    try {
      const about = await fetched("health");
      locked(!about.columns);
      part("#judging").hidden = !("judged" in about);
      if (!about.columns) return token && say("this is not the token", true);
      const names = Object.keys(about.columns).filter((name) => !positions.includes(name));
      fields.replaceChildren();
      names.forEach((name) => fields.append(about.values[name] ? choice(name, about.values[name]) : field(name)));
      filters.hidden = !names.length;
      say(`${about.texts.toLocaleString("en")} texts, encoded by ${about.model}`);
      const given = new URLSearchParams(location.hash.slice(1));
      query.value = given.get("q") ?? query.value;
      for (const one of given.getAll("where")) {
        const input = inputs().find((each) => one.startsWith(each.name) && /^(!=|[<>]=?|=)/.test(one.slice(each.name.length)));
        if (input) {
          const value = one.slice(input.name.length).replace(/^=(?!")/, "");
          // A condition that is no single value, or one of another day, becomes an entry of its own.
          if (input.matches("select") && ![...input.options].some((option) => option.value === value)) {
            input.append(make("option", value, { value }));
          }
          input.value = value;
          filters.open = true;
        }
      }
      search();
    } catch (error) {
      say(error.message, true);
    }
  };

  ask.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  secret.addEventListener("submit", (event) => {
    event.preventDefault();
    token = secret.querySelector("input").value;
    sessionStorage.setItem("token", token);
    start();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input"), lines = [...hits.children];
    const at = lines.indexOf(event.target.closest?.("#hits li"));
    const to = (line) => { event.preventDefault(); line?.focus(); };
    const key = (event.key ?? "").toLowerCase();  // with the capitals on, too
    if (event.key === "Escape" || (event.key === "/" && !typing)) { to(query); query.select(); }
    else if (event.key === "ArrowDown" && (at >= 0 || event.target === query)) to(lines[at + 1]);
    else if (event.key === "ArrowUp" && at >= 0) to(lines[at - 1] ?? query);
    else if (at >= 0 && lines[at].judged && key in answers && !(event.ctrlKey || event.metaKey || event.altKey)) {
      judge(lines[at], answers[key]);
      to(lines[at + (key === "u" ? 0 : 1)] ?? lines[at]);
    } else if (event.key === "Enter" && at >= 0 && event.target === lines[at]) lines[at].querySelector(".more")?.click();
  });
  start();
})();
