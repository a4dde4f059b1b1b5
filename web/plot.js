// Draws the chart of a pair anew, so that it can be zoomed and read at a moment. All figures stand in the page.
import uPlot from "/static/uplot.js";

const UNITS = [["Tbit/s", 1e12], ["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]];
const STRIP = 30;
const HOUR = 3600;
const DAY = 24 * HOUR;
const INCREMENTS = [60, 300, 900, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 30 * DAY, 60 * DAY];
let plot = null;

function rate(bps) {
  const [name, size] = UNITS.find(([, size]) => Math.abs(bps) >= size) ?? UNITS[4];
  return Number((bps / size).toPrecision(3)) + " " + name;
}

function moment(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

// Days where they begin, else the time.
function tick(seconds) {
  const text = new Date(seconds * 1000).toISOString();
  return text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function sheet() {
  if (!document.querySelector("link[href='/static/uplot.css']")) {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/static/uplot.css";
    document.head.append(link);
  }
}

// What has no figure, levels, the floor and changes of hosts.
function marks(data) {
  return (u) => {
    const context = u.ctx;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const x = (at) => u.valToPos(at, "x", true);
    const y = (bps) => u.valToPos(bps, "y", true);
    const line = (colour, thick, dash, points) => {
      context.strokeStyle = colour;
      context.lineWidth = thick * ratio;
      context.setLineDash(dash.map((one) => one * ratio));
      context.beginPath();
      for (const [fromX, fromY, toX, toY] of points) {
        context.moveTo(fromX, fromY);
        context.lineTo(toX, toY);
      }
      context.stroke();
    };
    context.save();
    context.beginPath();
    context.rect(left, top - 24 * ratio, width, height + (24 + STRIP) * ratio);
    context.clip();
    // Intervals.
    const bars = [];
    data.t.forEach((at, place) => {
      if (data.low[place] !== null && data.high[place] !== null) {
        bars.push([x(at), y(data.low[place]), x(at), y(data.high[place])]);
      }
    });
    context.globalAlpha = 0.3;
    line(style("--line"), 3, [], bars);
    context.globalAlpha = 1;
    line(style("--regime"), 2.5, [8, 4], data.regimes.map(([from, to, bps]) => [x(from), y(bps), x(to), y(bps)]));
    if (data.floor !== null) {
      line(style("--floor"), 1.4, [3, 4], [[left, y(data.floor), left + width, y(data.floor)]]);
    }
    line(style("--change"), 1.4, [5, 3], data.changes.map(([at]) => [x(at), top, x(at), top + height]));
    for (const [at, number] of data.changes) {
      context.fillStyle = style("--change");
      context.font = "700 " + 13 * ratio + "px sans-serif";
      const right = x(at) > left + width - 40 * ratio;
      context.textAlign = right ? "right" : "center";
      context.textBaseline = "bottom";
      context.fillText(number, x(at), top - 4 * ratio);
    }
    const middle = top + height + (STRIP / 2) * ratio;
    const size = 4 * ratio;
    for (const [kind, colour, thick] of [["not_run", "--soft", 2], ["failing", "--failing", 2.4], ["invalid", "--slow", 2.4]]) {
      const strokes = [];
      for (const [at, what] of data.marks) {
        if (what === kind) {
          const here = x(at);
          if (kind === "failing") {
            strokes.push([here - size, middle - size, here + size, middle + size], [here + size, middle - size, here - size, middle + size]);
          } else {
            strokes.push([here, middle - 1.5 * size, here, middle + 1.5 * size]);
          }
        }
      }
      line(style(colour), thick, [], strokes);
    }
    context.restore();
  };
}

// The mark or figure nearest to the cursor, in words.
function words(data, u) {
  const { left, idx } = u.cursor;
  if (left === null || left === undefined || left < 0) {
    return "Drag to zoom, double-click for all.";
  }
  const at = u.posToVal(left, "x");
  const reach = (u.scales.x.max - u.scales.x.min) / 150;
  const near = (list) => list.filter(([when]) => Math.abs(when - at) < reach).sort((a, b) => Math.abs(a[0] - at) - Math.abs(b[0] - at))[0];
  const change = near(data.changes);
  const mark = near(data.marks);
  const parts = [];
  if (idx !== null && idx !== undefined && data.v[idx] !== null && data.v[idx] !== undefined && Math.abs(data.t[idx] - at) < 3 * reach) {
    const range = data.low[idx] === null ? "" : " (" + rate(data.low[idx]) + " to " + rate(data.high[idx]) + ")";
    parts.push(moment(data.t[idx]) + ": " + rate(data.v[idx]) + range);
  }
  if (mark) { parts.push(mark[2]); }
  if (change) { parts.push(moment(change[0]) + ": " + change[2]); }
  return parts.join(" · ") || moment(at);
}

export function draw() {
  const source = document.getElementById("series");
  const figure = document.querySelector("figure.plot");
  if (!source || !figure) { return; }
  sheet();
  const data = JSON.parse(source.textContent);
  plot?.destroy();
  const still = figure.querySelector(".still");
  figure.querySelectorAll(".said, .uplot").forEach((one) => one.remove());
  const said = document.createElement("p");
  said.className = "said";
  const box = document.createElement("div");
  figure.prepend(box, said);
  const width = () => Math.min(figure.clientWidth, 1280);
  const height = () => Math.min(380, Math.max(260, width() * 0.36));
  const axis = { stroke: style("--soft"), grid: { stroke: style("--edge"), width: 1 }, ticks: { show: false } };
  const scale = (UNITS.find(([, size]) => data.most >= size) ?? UNITS[4]);
  plot = new uPlot({
    width: width(),
    height: height(),
    padding: [26, 12, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    scales: { x: { time: true, min: data.since, max: data.until, range: (_, min, max) => [min ?? data.since, max ?? data.until] }, y: { range: [0, data.most] } },
    axes: [
      { ...axis, size: 30 + STRIP, gap: 6 + STRIP, space: 70, incrs: INCREMENTS, values: (_, ticks) => ticks.map(tick) },
      { ...axis, size: 74, values: (_, ticks) => ticks.map((bps) => (bps === 0 ? "0" : Number((bps / scale[1]).toPrecision(3)) + " " + scale[0])) },
    ],
    series: [{}, { stroke: style("--line"), width: 1.6, spanGaps: false, points: { show: true, size: data.t.length > width() / 4 ? 3 : 5, fill: style("--line") } }],
    cursor: { y: false, drag: { x: true, y: false } },
    hooks: { draw: [marks(data)], setCursor: [(u) => { said.textContent = words(data, u); }] },
  }, [data.t, data.v], box);
  plot.setScale("x", { min: data.since, max: data.until });
  said.textContent = "Drag to zoom, double-click for all.";
  // This one takes the place of the still drawing, its words included.
  still.hidden = true;
  box.querySelector(".uplot").setAttribute("role", "img");
  box.querySelector(".uplot").setAttribute("aria-label", still.querySelector("desc").textContent);
  let pending = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      if (box.isConnected) { plot.setSize({ width: width(), height: height() }); }
    });
  }).observe(figure);
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
