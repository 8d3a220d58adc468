// Keeps ages and times to expiry current, by the server's clock.

let offset = 0;

export function serverSays(date) {
  if (date) offset = new Date(date).getTime() - Date.now();
}

function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h\u00a0${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}`;
  return `${Math.floor(s / 86400)}\u00a0d`;
}

function tick() {
  const now = Date.now() + offset;
  for (const time of document.querySelectorAll("time[data-age], time[data-until]")) {
    const seconds = (new Date(time.dateTime).getTime() - now) / 1000;
    const text = span(time.dataset.until === undefined ? -seconds : seconds);
    if (time.textContent !== text) time.textContent = text;
  }
}

setInterval(tick, 1000);
