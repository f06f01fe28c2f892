from selfsent import progress


def test_long_work_is_told_where_there_are_no_bars(monkeypatch):
    now, lines = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.Shown, "notice", lambda self, line: lines.append(line))
    shown = progress.Shown()
    for _ in range(10):
        shown.count("classifying", 10, 100)
        now[0] += 10
    assert lines == [
        "classifying: 40% done, about 45 s left",
        "classifying: 70% done, about 26 s left",
    ]
    shown.count("classifying", 1, 100)  # another run begins anew
    assert len(lines) == 2
