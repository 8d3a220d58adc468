// One event stream that outlives drops, deploys and standby: EventSource itself stops for good at a 503, and does not
// notice a connection that is only half there.

// The gateway says something every 5 s. Two of these and a little: a page is known to be stale within 15 s.
const SILENT_MS = 11_000;
const ASK_MS = 5_000;
const KINDS = ["change", "text", "state", "current", "reset", "bye", "hb"];

export class Source {
  // `tell` gets {type: "event", kind, data, id}, {type: "status", status: "on" | "lost" | "out" | "over"}, and
  // {type: "beat"} whenever the gateway is heard. It is "on" once all that was missed has come, not before.
  constructor(url, after, tell) {
    this.url = url;
    this.after = after;
    this.tell = tell;
    this.wait = 500;
    this.open();
  }

  open() {
    this.stop();
    this.events = new EventSource(`${this.url}&after=${this.after}`);
    this.events.onerror = () => this.failed();
    for (const kind of KINDS) this.events.addEventListener(kind, (event) => this.heard(kind, event));
    this.watch();
  }

  heard(kind, event) {
    this.watch();
    this.tell({ type: "beat" });
    if (kind === "hb") return;
    if (kind === "current") return this.caughtUp();
    const id = event.lastEventId ? Number(event.lastEventId) : 0;
    // A text delta has no id of its own; the browser repeats the last one.
    const own = kind === "change" && id > this.after ? id : 0;
    if (own) this.after = own;
    if (kind === "bye") {
      this.stop();
      this.status("over");
      return;
    }
    this.tell({ type: "event", kind, id: own, data: kind === "reset" ? null : JSON.parse(event.data) });
  }

  caughtUp() {
    this.wait = 500;
    this.status("on");
  }

  watch() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => { this.status("lost"); this.open(); }, SILENT_MS);
  }

  failed() {
    this.status("lost");
    if (this.events.readyState === EventSource.CLOSED) this.again();
  }

  // Signed out, or only away? Asks before it tries again, each time a little later.
  async again() {
    this.stop();
    let status = 0;
    const asked = { cache: "no-store", signal: AbortSignal.timeout(ASK_MS) };
    try { status = (await fetch(`/console/session?${this.url.split("?")[1]}`, asked)).status; } catch { /* away */ }
    if (status === 401) return this.status("out");
    const wait = this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.wait * 2, 15_000);
    this.retry = setTimeout(() => this.open(), wait);
  }

  status(status) {
    if (status !== this.last) this.tell({ type: "status", status });
    this.last = status;
  }

  stop() {
    clearTimeout(this.silence);
    clearTimeout(this.retry);
    this.events?.close();
  }
}
