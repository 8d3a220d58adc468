// One connection a stream for all tabs: a browser opens six to a site, and tabs are many.

import { Source } from "./source.js";

const KEPT = 500;
const LINGER_MS = 10_000;
const streams = new Map();

function streamOf(url, after) {
  let stream = streams.get(url);
  if (stream && after < stream.from) {
    // This tab needs more than what is kept: read again from where it stands; the others drop what they know.
    close(url);
    stream = undefined;
  }
  if (!stream) {
    stream = { ports: stream?.ports ?? new Set(), kept: [], from: after, status: "", state: null };
    streams.set(url, stream);
    stream.source = new Source(url, after, (message) => pass(url, stream, message));
  }
  return stream;
}

function pass(url, stream, message) {
  if (message.type === "status") stream.status = message.status;
  else if (message.id) {
    stream.kept.push(message);
    if (stream.kept.length > KEPT) stream.from = stream.kept.shift().id;
  } else if (message.kind === "state") stream.state = message;
  for (const port of stream.ports) port.postMessage({ url, ...message });
}

function close(url) {
  const stream = streams.get(url);
  stream?.source.stop();
  streams.delete(url);
  return stream;
}

function join(port, url, after) {
  const old = streams.get(url);
  const stream = streamOf(url, after);
  if (old && old !== stream) for (const other of old.ports) stream.ports.add(other);
  clearTimeout(stream.leaving);
  stream.ports.add(port);
  for (const message of stream.kept) if (message.id > after) port.postMessage({ url, ...message });
  if (stream.state) port.postMessage({ url, ...stream.state });
  if (stream.status) port.postMessage({ url, type: "status", status: stream.status });
}

function leave(port, url) {
  const stream = streams.get(url);
  if (!stream) return;
  stream.ports.delete(port);
  if (!stream.ports.size) stream.leaving = setTimeout(() => close(url), LINGER_MS);
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.do === "join") join(port, data.url, data.after);
    else if (data.do === "leave") leave(port, data.url);
    else if (data.do === "retry") for (const stream of streams.values()) if (stream.ports.has(port)) stream.source.open();
  };
  port.start();
};
