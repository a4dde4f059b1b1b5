// Draws the charts anew at the width of the window, zooms them together, tells the values at an instant, and
// shades what a finding rests on. It computes no figure: all of them stand in the page.
(function () {
  "use strict";
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const MARGIN = { left: 58, right: 12, top: 20, bottom: 24 };
  const HEIGHT = 190;
  const LEAST_SPAN = 0.0005;
  const all = [data.from / 1e6, data.to / 1e6];
  let view = all.slice();
  let shown = null;
  let cursor = null;

  // Differences to values; a break is NaN.
  function whole(differences, scale) {
    const values = new Float64Array(differences.length);
    let sum = 0;
    differences.forEach(function (step, row) {
      if (step === null) {
        values[row] = NaN;
      } else {
        sum += step;
        values[row] = sum * scale;
      }
    });
    return values;
  }

  const charts = Array.from(document.querySelectorAll("[data-chart]")).map(function (figure) {
    const chart = data.charts[figure.dataset.chart];
    chart.lines.forEach(function (line) {
      line.t = whole(line.t, 1e-6);
      line.v = whole(line.v, 1);
      line.hidden = false;
    });
    chart.figure = figure;
    chart.plot = figure.querySelector(".plot");
    chart.svg = figure.querySelector(".plot svg");
    chart.items = Array.from(figure.querySelectorAll("[data-line]"));
    return chart;
  });

  // The first row later than the instant.
  function after(times, instant) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= instant) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  function rows(line) {
    const from = Math.max(after(line.t, view[0]) - 1, 0);
    return [from, Math.min(after(line.t, view[1]) + 1, line.t.length)];
  }

  // 1, 2 or 5 times a power of ten, not below the least.
  function nice(least) {
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1e-12))));
    const factor = [1, 2, 5].find(function (one) { return one * power >= least * 0.999999; });
    return (factor || 10) * power;
  }

  function label(value, step) {
    const digits = Math.min(Math.max(Math.ceil(-Math.log10(step * 1.000001)), 0), 9);
    return (Math.abs(value) < step / 2 ? 0 : value).toFixed(digits);
  }

  function prefix(chart, value) {
    const least = chart.unit === "count" ? 100 : 1;
    let found = chart.steps[0];
    chart.steps.forEach(function (step) { if (value >= step[1] * least) { found = step; } });
    return found;
  }

  function spelled(chart, value) {
    if (Number.isNaN(value)) { return "not known"; }
    if (chart.unit === "count") { return String(Math.round(value)); }
    const unit = prefix(chart, value * 1.0005);
    const scaled = value / unit[1];
    if (unit[1] <= 1) { return value + " " + unit[0]; }
    return scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0) + " " + unit[0];
  }

  // The value axis is the same for a chart in all runs of the page.
  function most(group) {
    let top = 0;
    let bound = 0;
    charts.forEach(function (chart) {
      if (chart.group !== group) { return; }
      chart.lines.forEach(function (line) {
        if (line.hidden) { return; }
        const span = rows(line);
        let most = 0;
        for (let row = span[0]; row < span[1]; row += 1) {
          if (line.v[row] > most) { most = line.v[row]; }
        }
        if (line.bound) { bound = Math.max(bound, most); } else { top = Math.max(top, most); }
      });
      if (chart.level && chart.level[0] / 1e6 < view[1] && chart.level[1] / 1e6 > view[0]) { top = Math.max(top, chart.level[4]); }
    });
    // A bound far above the other lines runs along the upper edge.
    return Math.max(top > 0 ? Math.max(top, Math.min(bound, top * 1.5)) : bound, 1);
  }

  function scaleOf(chart, top) {
    const unit = prefix(chart, top);
    let step = nice(top / unit[1] / 4.5) * unit[1];
    if (chart.unit === "count" || chart.unit === "bytes") { step = Math.max(step, 1); }
    const end = Math.ceil(top / step * 0.999999) * step;
    return { unit: unit, step: step, top: chart.unit === "share" && top < 11000 ? Math.min(end, 10000) : end };
  }

  // First, least, most and last of each column of pixels: no extreme is lost.
  function path(line, x, y, bottom) {
    const span = rows(line);
    let d = "";
    let drawing = false;
    let lastX = 0;
    function point(row) {
      const value = line.v[row];
      const px = x(line.t[row]).toFixed(1);
      if (Number.isNaN(value)) {
        if (drawing && line.step) { d += "H" + px; }
        if (drawing && line.fill) { d += "V" + bottom; }
        drawing = false;
        return;
      }
      const py = y(value).toFixed(1);
      if (!drawing) {
        d += line.fill ? "M" + px + " " + bottom + "V" + py : "M" + px + " " + py;
      } else {
        d += line.step ? "H" + px + "V" + py : "L" + px + " " + py;
      }
      drawing = true;
      lastX = px;
    }
    let row = span[0];
    while (row < span[1]) {
      const column = Math.floor(x(line.t[row]));
      const first = row;
      let least = row;
      let greatest = row;
      row += 1;
      while (row < span[1] && !Number.isNaN(line.v[row]) && !Number.isNaN(line.v[first]) && Math.floor(x(line.t[row])) === column) {
        if (line.v[row] < line.v[least]) { least = row; }
        if (line.v[row] > line.v[greatest]) { greatest = row; }
        row += 1;
      }
      const kept = [first, Math.min(least, greatest), Math.max(least, greatest), row - 1];
      kept.forEach(function (one, place) { if (place === 0 || one !== kept[place - 1]) { point(one); } });
    }
    if (drawing && line.fill) { d += "H" + lastX + "V" + bottom; }
    return d;
  }

  function bandsOf(chart) {
    return data.bands[chart.run + "-" + chart.flow] || [];
  }

  // What the time of the sending streams went to at an instant.
  function limit(chart, instant) {
    const band = bandsOf(chart).find(function (one) { return one[1] / 1e6 <= instant && instant < one[2] / 1e6; });
    return band ? data.classes[band[0]] : "";
  }

  function rect(kind, left, top, right, bottom) {
    return '<rect class="' + kind + '" x="' + left.toFixed(1) + '" y="' + top.toFixed(1) + '" width="' + Math.max(right - left, 0).toFixed(1) +
      '" height="' + Math.max(bottom - top, 1).toFixed(1) + '"/>';
  }

  function draw(chart) {
    const width = Math.max(chart.plot.clientWidth, 240);
    const left = MARGIN.left;
    const right = width - MARGIN.right;
    const top = MARGIN.top;
    const bottom = HEIGHT - MARGIN.bottom;
    const scale = scaleOf(chart, most(chart.group));
    const x = function (at) { return left + (at - view[0]) / (view[1] - view[0]) * (right - left); };
    const y = function (value) { return bottom - Math.min(value / scale.top, 1) * (bottom - top); };
    const clip = "clip-" + chart.figure.dataset.chart;
    const parts = ['<clipPath id="' + clip + '">' + rect("", left, top - 2, right, bottom + 1) + "</clipPath>"];
    let grid = "";
    for (let value = 0; value <= scale.top * 1.000001; value += scale.step) {
      grid += "M" + left + " " + y(value).toFixed(1) + "H" + right;
      parts.push('<text class="tick end" x="' + (left - 6) + '" y="' + (y(value) + 4).toFixed(1) + '">' + label(value / scale.unit[1], scale.step / scale.unit[1]) + "</text>");
    }
    const step = nice((view[1] - view[0]) / Math.max(width / 80, 2));
    for (let at = Math.ceil(view[0] / step - 1e-9) * step; at <= view[1] + step * 1e-6; at += step) {
      grid += "M" + x(at).toFixed(1) + " " + bottom + "V" + (bottom + 4);
      if (x(at) < right - 14) {
        parts.push('<text class="tick middle" x="' + x(at).toFixed(1) + '" y="' + (bottom + 16) + '">' + label(at, step) + "</text>");
      }
    }
    parts.push('<text class="tick end" x="' + right + '" y="' + (bottom + 16) + '">s</text>');
    parts.push('<text class="unit end" x="' + (left - 6) + '" y="' + (top - 8) + '">' + scale.unit[0] + "</text>");
    const clipped = [];
    const omitted = data.omitted[chart.run];
    if (omitted !== null) { clipped.push(rect("omitted", left, top, x(omitted / 1e6), bottom)); }
    const evidence = shown === null ? null : data.evidence[shown];
    if (evidence && evidence.run === chart.run && (evidence.flow === null || chart.flow === null || evidence.flow === chart.flow)) {
      clipped.push(rect("evidence", x(evidence.from / 1e6), top, x(evidence.to / 1e6), bottom));
    }
    clipped.push('<path class="grid" d="' + grid + '"/>');
    const ended = data.ended[chart.run];
    if (ended !== null && ended / 1e6 < all[1]) {
      clipped.push('<path class="ended" d="M' + x(ended / 1e6).toFixed(1) + " " + top + "V" + bottom + '"/>');
    }
    if (chart.level) {
      const from = x(chart.level[0] / 1e6);
      const to = x(chart.level[1] / 1e6);
      clipped.push(rect("interval", from, y(chart.level[4]), to, y(chart.level[3])));
      clipped.push('<path class="mean" d="M' + from.toFixed(1) + " " + y(chart.level[2]).toFixed(1) + "H" + to.toFixed(1) + '"/>');
    }
    const ribbons = {};
    bandsOf(chart).forEach(function (band) {
      const from = Math.max(x(band[1] / 1e6), left);
      const to = Math.min(x(band[2] / 1e6), right);
      if (to > from) {
        ribbons[band[0]] = (ribbons[band[0]] || "") + "M" + from.toFixed(1) + " " + (top - 7) + "H" + to.toFixed(1) + "v5H" + from.toFixed(1) + "z";
      }
    });
    Object.keys(ribbons).forEach(function (one) { parts.push('<path class="part k' + one + '" d="' + ribbons[one] + '"/>'); });
    chart.lines.forEach(function (line) {
      if (!line.hidden) { clipped.push('<path class="' + line.class + '" d="' + path(line, x, y, bottom) + '"/>'); }
    });
    parts.splice(1, 0, '<g clip-path="url(#' + clip + ')">' + clipped.join("") + "</g>");
    parts.push('<path class="cursor" d=""/>', rect("selection", 0, 0, 0, 0));
    chart.svg.setAttribute("viewBox", "0 0 " + width + " " + HEIGHT);
    chart.svg.innerHTML = parts.join("");
    chart.x = x;
    chart.edges = { left: left, right: right, top: top, bottom: bottom };
    chart.mark = chart.svg.querySelector(".cursor");
    chart.selection = chart.svg.querySelector(".selection");
    chart.selection.setAttribute("width", 0);
  }

  function drawAll() {
    charts.forEach(draw);
    point(cursor);
  }

  const bar = document.querySelector(".bar");
  const at = bar.querySelector(".at");

  // Marks an instant on all charts, with the last value known there.
  function point(instant) {
    cursor = instant;
    const inside = instant !== null && instant >= view[0] && instant <= view[1];
    at.textContent = inside ? "at " + instant.toFixed(view[1] - view[0] < 2 ? 4 : 3) + " s" : "";
    charts.forEach(function (chart) {
      const px = inside ? chart.x(instant).toFixed(1) : 0;
      chart.mark.setAttribute("d", inside ? "M" + px + " " + chart.edges.top + "V" + chart.edges.bottom : "");
      const here = chart.figure.querySelector(".limit-now");
      if (here) { here.textContent = inside ? limit(chart, instant) : ""; }
      chart.items.forEach(function (item) {
        const line = chart.lines[Number(item.dataset.line)];
        const row = inside ? after(line.t, instant) - 1 : -1;
        const known = row >= 0 && (row + 1 < line.t.length || instant <= line.t[row] + 0.1);
        item.querySelector(".now").textContent = known ? spelled(chart, line.v[row]) : "";
      });
    });
  }

  function zoom(from, to) {
    const span = Math.max(to - from, LEAST_SPAN);
    from = Math.max(all[0], Math.min(from, all[1] - span));
    view = [from, Math.min(from + span, all[1])];
    drawAll();
  }

  function instantOf(chart, event) {
    const box = chart.svg.getBoundingClientRect();
    const edges = chart.edges;
    const px = Math.min(Math.max(event.clientX - box.left, edges.left), edges.right);
    return view[0] + (px - edges.left) / (edges.right - edges.left) * (view[1] - view[0]);
  }

  function keys(event) {
    const span = view[1] - view[0];
    const middle = cursor !== null && cursor >= view[0] && cursor <= view[1] ? cursor : (view[0] + view[1]) / 2;
    const sign = event.key === "ArrowLeft" ? -1 : 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (event.shiftKey) { zoom(view[0] + sign * span / 5, view[1] + sign * span / 5); }
      else { point(Math.min(Math.max(middle + sign * span / 100, view[0]), view[1])); }
    } else if (event.key === "+" || event.key === "=") {
      zoom(middle - span / 4, middle + span / 4);
    } else if (event.key === "-") {
      zoom(middle - span, middle + span);
    } else if (event.key === "Escape" || event.key === "0") {
      zoom(all[0], all[1]);
    } else {
      return;
    }
    event.preventDefault();
  }

  charts.forEach(function (chart) {
    const plot = chart.plot;
    let begun = null;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", chart.svg.getAttribute("aria-label"));
    plot.addEventListener("keydown", keys);
    plot.addEventListener("dblclick", function () { zoom(all[0], all[1]); });
    plot.addEventListener("pointerdown", function (event) {
      if (event.button === 0) { begun = instantOf(chart, event); plot.setPointerCapture(event.pointerId); }
    });
    plot.addEventListener("pointermove", function (event) {
      const instant = instantOf(chart, event);
      point(instant);
      if (begun !== null) {
        const px = [chart.x(begun), chart.x(instant)].sort(function (a, b) { return a - b; });
        chart.selection.setAttribute("x", px[0]);
        chart.selection.setAttribute("width", px[1] - px[0]);
        chart.selection.setAttribute("y", chart.edges.top);
        chart.selection.setAttribute("height", chart.edges.bottom - chart.edges.top);
      }
    });
    plot.addEventListener("pointerup", function (event) {
      const instant = instantOf(chart, event);
      const from = begun;
      begun = null;
      chart.selection.setAttribute("width", 0);
      if (from !== null && Math.abs(chart.x(instant) - chart.x(from)) > 6) { zoom(Math.min(from, instant), Math.max(from, instant)); }
    });
    plot.addEventListener("pointercancel", function () { begun = null; chart.selection.setAttribute("width", 0); });
    plot.addEventListener("pointerleave", function () { if (begun === null) { point(null); } });
    chart.items.forEach(function (item) {
      const line = chart.lines[Number(item.dataset.line)];
      function toggle() {
        line.hidden = !line.hidden;
        item.setAttribute("aria-pressed", String(!line.hidden));
        drawAll();
      }
      item.tabIndex = 0;
      item.setAttribute("role", "button");
      item.setAttribute("aria-pressed", "true");
      // The line that is pointed at stands out.
      function lit(on) {
        const path = chart.svg.querySelectorAll("path.line")[chart.lines.filter(function (one) { return !one.hidden; }).indexOf(line)];
        chart.svg.classList.toggle("dim", on && !line.hidden);
        if (path) { path.classList.toggle("lit", on); }
      }
      item.addEventListener("mouseenter", function () { lit(true); });
      item.addEventListener("mouseleave", function () { lit(false); });
      item.addEventListener("focus", function () { lit(true); });
      item.addEventListener("blur", function () { lit(false); });
      item.addEventListener("click", toggle);
      item.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
      });
    });
  });

  let pinned = null;
  function shade(key) {
    if (shown !== key) { shown = key; drawAll(); }
  }
  document.querySelectorAll("[data-finding]").forEach(function (finding) {
    const key = finding.dataset.finding;
    const button = finding.querySelector("button.show");
    if (!button || !data.evidence[key]) { return; }
    button.hidden = false;
    finding.addEventListener("mouseenter", function () { shade(key); });
    finding.addEventListener("mouseleave", function () { shade(pinned); });
    button.addEventListener("focus", function () { shade(key); });
    button.addEventListener("blur", function () { shade(pinned); });
    button.addEventListener("click", function () {
      pinned = pinned === key ? null : key;
      document.querySelectorAll("[data-finding]").forEach(function (other) {
        const on = other.dataset.finding === pinned;
        other.classList.toggle("shown", on);
        const there = other.querySelector("button.show");
        if (there) { there.setAttribute("aria-pressed", String(on)); }
      });
      shade(pinned);
      if (pinned !== null) { document.getElementById("charts").scrollIntoView({ behavior: "smooth" }); }
    });
  });

  bar.hidden = charts.length === 0;
  bar.querySelector(".all").addEventListener("click", function () { zoom(all[0], all[1]); });
  if (data.thinned) { bar.querySelector(".help").append(" " + data.thinned); }
  let asked = false;
  window.addEventListener("resize", function () {
    if (asked) { return; }
    asked = true;
    window.requestAnimationFrame(function () { asked = false; drawAll(); });
  });
  // The help text may have changed the widths.
  drawAll();
  root.dataset.drawn = String(charts.length);
})();
