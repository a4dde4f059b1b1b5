// Loads the page again when something happened that it shows. Figures are made by the hub alone.
const said = document.getElementById("live");
let timer = 0;
let busy = false;
let cost = 0;

function say(text) {
  if (said && said.textContent !== text) {
    said.textContent = text;
  }
}

async function plot() {
  if (document.getElementById("series")) {
    const { draw } = await import("/static/plot.js");
    draw();
  }
}

// What has the focus, as something that the new page has as well.
function focused() {
  const element = document.activeElement;
  const main = document.getElementById("content");
  if (!element || !main.contains(element) || element === main) {
    return () => {};
  }
  const href = element.getAttribute("href");
  const label = element.getAttribute("aria-label");
  const id = element.id;
  const alike = Array.from(main.querySelectorAll(element.tagName));
  const same = (one) => (id ? one.id === id : href ? one.getAttribute("href") === href : label && one.getAttribute("aria-label") === label);
  const place = alike.filter(same).indexOf(element);
  return () => {
    const found = Array.from(document.getElementById("content").querySelectorAll(element.tagName)).filter(same)[Math.max(place, 0)];
    if (found) {
      found.focus({ preventScroll: true });
    }
  };
}

async function refresh() {
  // A form that is being filled in, and a page in the background, stay as they are.
  if (document.hidden || document.querySelector("details[open] form") || document.activeElement?.matches("select, input, textarea")) {
    wait(2000);
    return;
  }
  busy = true;
  const begun = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) {
      say("The hub does not answer; these figures are old.");
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [now, next] = [document.getElementById("content"), fresh.getElementById("content")];
    if (next) {
      const opened = Array.from(now.querySelectorAll("details")).map((one) => one.open);
      const scrolled = Array.from(now.querySelectorAll(".wide")).map((one) => one.scrollLeft);
      const focus = focused();
      now.replaceChildren(...next.childNodes);
      now.querySelectorAll("details").forEach((one, place) => { one.open = opened[place] ?? one.open; });
      now.querySelectorAll(".wide").forEach((one, place) => { one.scrollLeft = scrolled[place] ?? 0; });
      focus();
      document.title = fresh.title;
      document.querySelector(".top nav").replaceWith(fresh.querySelector(".top nav"));
      document.querySelector("footer time").replaceWith(fresh.querySelector("footer time"));
      await plot();
    }
    say("Updated as tests end.");
  } catch {
    say("The hub does not answer; these figures are old.");
  } finally {
    busy = false;
    cost = performance.now() - begun;
  }
}

// Soon, but so that a large page does not keep hub or browser busy.
function wait(least) {
  clearTimeout(timer);
  timer = setTimeout(() => { if (busy) { wait(500); } else { refresh(); } }, Math.max(least, cost * 10));
}

function concerns(event) {
  const here = new URLSearchParams(location.search);
  if (location.pathname !== "/pair" && !here.get("task")) {
    return true;
  }
  const what = JSON.parse(event.data);
  return ["task", "from", "to"].every((name) => !what[name] || !here.get(name) || what[name] === here.get(name));
}

// The report of a run does not change, and neither does who is logged in.
if (!["/run/", "/login", "/account"].some((path) => location.pathname.startsWith(path)) && window.EventSource) {
  const events = new EventSource("/events");
  for (const name of ["run", "alert", "facts", "live"]) {
    events.addEventListener(name, (event) => { if (concerns(event)) { wait(700); } });
  }
  events.addEventListener("ready", () => say("Updated as tests end."));
  events.addEventListener("error", () => say("Not updated at the moment; trying again."));
  // Ages grow also when nothing happens.
  setInterval(() => wait(0), 60000);
  addEventListener("pagehide", () => events.close());
}
