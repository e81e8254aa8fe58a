// Perfetto's own trace processor in node: the wasm build of https://ui.perfetto.dev, with its glue and
// its decoder, as npm packages carry it. Nothing of it is part of this repository.

import {readFileSync} from 'node:fs';
import {basename, join} from 'node:path';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

/// The glue is made for a worker of a browser: what it asks of one, and nothing more.
class Request {
  open(method, url) { this.url = url; }
  send() { this.response = Request.files(basename(this.url)).buffer; }
}

/// The processor was built for memories of 32 bits too, and packages carry that one: a machine with more
/// must not look for the other one.
function only32Bits() {
  // The module by which the glue finds out has nothing but a memory; every other one begins with its types.
  const kFirstSection = 8;
  const kMemorySection = 5;
  const Module = new Proxy(WebAssembly.Module, {
    construct(target, [bytes]) {
      if (bytes[kFirstSection] === kMemorySection) throw new Error('memories of 64 bits are left alone');
      return new target(bytes);
    },
  });
  return new Proxy(WebAssembly, {get: (all, name) => (name === 'Module' ? Module : all[name])});
}

/// Reads traces and answers queries in SQL, https://perfetto.dev/docs/analysis/trace-processor.
export class TraceProcessor {
  /// `folder` has trace_processor.wasm, engine_bundle.node.js and engine.mjs.
  static async start(folder) {
    const {EngineBase} = await import(pathToFileURL(join(folder, 'engine.mjs')).href);
    // What the processor says when it is asked for something is in its answers.
    const quiet = {...console, warn() {}, log() {}};
    const scope = {WorkerGlobalScope: class {}, location: {href: 'file:///'}, XMLHttpRequest: Request,
      WebAssembly: only32Bits(), console: quiet, TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout,
      queueMicrotask, Uint8Array, ArrayBuffer, TypeError};
    scope.self = scope;
    scope.globalThis = scope;
    Request.files = (name) => Uint8Array.from(readFileSync(join(folder, name)));
    const glue = join(folder, 'engine_bundle.node.js');
    vm.runInNewContext(readFileSync(glue, 'utf8'), scope, {filename: glue});

    const {port1: processors, port2: ours} = new MessageChannel();
    class Engine extends EngineBase {
      id = 'processor';
      mode = 'WASM';
      rpcSendRequestBytes(bytes) { ours.postMessage(bytes); }
    }
    const engine = new Engine();
    ours.onmessage = ({data}) => engine.onRpcResponseBytes(data);
    scope.onmessage({data: processors});
    return new TraceProcessor(engine, ours);
  }

  constructor(engine, port) {
    this.engine = engine;
    this.port = port;
  }

  /// Reads a whole trace, in pieces that a message may have.
  async load(bytes) {
    const kPiece = 16 << 20;
    for (let from = 0; from < bytes.length; from += kPiece) await this.engine.parse(bytes.subarray(from, from + kPiece));
    await this.engine.notifyEof();
  }

  /// All rows of the answer, as objects.
  async rows(sql) {
    const answer = await this.engine.query(sql);
    const rows = [];
    for (const row = answer.iter({}); row.valid(); row.next()) {
      const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
      rows.push(Object.fromEntries(answer.columns().map((name) => [name, plain(row.get(name))])));
    }
    return rows;
  }

  close() { this.port.close(); }
}
