// A small driver for headless Chromium over the DevTools protocol's pipe (file descriptors 3 and 4,
// messages ended by a zero byte). Needs nothing but node: no package, no port, no WebSocket.

import {spawn, execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const kStartTimeoutMs = 60_000;  // a cold browser on a busy two-core machine
const kCommandTimeoutMs = 60_000;

/// The path of a browser that can be driven, or the reason why there is none: {path} or {reason}.
export function findChromium() {
  const candidates = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome', '/usr/bin/chromium-browser'];
  const path = candidates.find((candidate) => candidate && existsSync(candidate));
  if (!path) return {reason: 'chromium is not installed (ci/setup.sh installs it where the distribution packages it)'};
  // Ubuntu's package is a script that starts a snap, which can neither read the build directory nor
  // run in a container.
  const head = readFileSync(path).subarray(0, 4096).toString('latin1');
  if (head.startsWith('#!') && head.includes('snap')) {
    return {reason: `${path} starts a snap, which cannot read files of the build; set CHROMIUM to a real browser`};
  }
  try {
    execFileSync(path, ['--version'], {stdio: ['ignore', 'pipe', 'ignore'], timeout: kStartTimeoutMs});
  } catch (error) {
    return {reason: `${path} --version does not run: ${error.message}`};
  }
  return {path};
}

export class Browser {
  static async start(path) {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), 'faultline-chromium-'));
    const flags = ['--headless=new', '--remote-debugging-pipe', `--user-data-dir=${browser.profile}`, '--no-first-run',
      '--no-default-browser-check', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking',
      '--disable-component-update', '--disable-extensions', '--hide-scrollbars', '--force-color-profile=srgb'];
    if (process.getuid() === 0) flags.push('--no-sandbox');  // it refuses to start otherwise
    browser.child = spawn(path, [...flags, 'about:blank'], {stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'], detached: true});
    browser.#listen();
    await browser.send('Browser.getVersion', {}, undefined, kStartTimeoutMs);
    return browser;
  }

  #pending = new Map();
  #listeners = [];
  #nextId = 1;
  #stderr = '';

  #listen() {
    let rest = '';
    this.child.stdio[4].setEncoding('utf8').on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) this.#receive(JSON.parse(message));
    });
    this.child.stderr.setEncoding('utf8').on('data', (text) => { this.#stderr = (this.#stderr + text).slice(-4000); });
    const end = (why) => {
      for (const {reject} of this.#pending.values()) reject(new Error(`chromium ${why}\n${this.#stderr}`));
      this.#pending.clear();
    };
    this.child.on('error', (error) => end(error.message));
    this.child.on('exit', (code, signal) => end(`ended (${signal || code})`));
    this.child.stdio[3].on('error', () => {});  // the exit says it better
  }

  #receive(message) {
    if (message.id === undefined) {
      for (const listener of this.#listeners) listener(message);
      return;
    }
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (!pending) return;
    if (message.error) pending.reject(new Error(`${pending.method}: ${message.error.message}`));
    else pending.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined, timeoutMs = kCommandTimeoutMs) {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(`${method}: no answer in ${timeoutMs} ms\n${this.#stderr}`));
      }, timeoutMs);
      this.#pending.set(id, {
        method,
        resolve: (value) => { clearTimeout(timer); resolve(value); },
        reject: (error) => { clearTimeout(timer); reject(error); },
      });
      this.child.stdio[3].write(`${JSON.stringify({id, method, params, sessionId})}\0`);
    });
  }

  on(listener) {
    this.#listeners.push(listener);
  }

  /// Opens a URL on a screen of the given size. The page collects what a clean page has none of.
  async open(url, {width, height = 900, dark = false}) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    const page = new Page(this, sessionId, targetId);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${domain}.enable`);
    await page.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: false});
    await page.setDark(dark);
    const loaded = page.event('Page.loadEventFired');
    await page.send('Page.navigate', {url});
    await loaded;
    return page;
  }

  async close() {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.send('Browser.close').catch(() => {});
    const killer = setTimeout(() => this.child.kill('SIGKILL'), 5000);
    if (this.child.exitCode === null && this.child.signalCode === null) await gone;
    clearTimeout(killer);
    rmSync(this.profile, {recursive: true, force: true, maxRetries: 5});
  }
}

export class Page {
  problems = [];  // console messages of warning and above, exceptions
  requests = [];  // every URL asked for

  constructor(browser, sessionId, targetId) {
    Object.assign(this, {browser, sessionId, targetId});
    browser.on((message) => {
      if (message.sessionId !== sessionId) return;
      const {method, params} = message;
      if (method === 'Runtime.exceptionThrown') {
        const {exceptionDetails: details} = params;
        this.problems.push(`exception: ${(details.exception && details.exception.description) || details.text}`);
      } else if (method === 'Runtime.consoleAPICalled') {
        this.problems.push(`console.${params.type}: ${params.args.map((arg) => arg.value ?? arg.description).join(' ')}`);
      } else if (method === 'Log.entryAdded') {
        this.problems.push(`log ${params.entry.level}: ${params.entry.text}`);
      } else if (method === 'Network.requestWillBeSent') {
        this.requests.push(params.request.url);
      }
    });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  event(name) {
    return new Promise((resolve) => {
      this.browser.on((message) => {
        if (message.sessionId === this.sessionId && message.method === name) resolve(message.params);
      });
    });
  }

  setDark(dark) {
    return this.send('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
  }

  /// The JSON value of a JavaScript expression (a promise is waited for).
  async evaluate(expression) {
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, returnByValue: true, awaitPromise: true});
    if (exceptionDetails) throw new Error((exceptionDetails.exception || {}).description || exceptionDetails.text);
    return result.value;
  }

  /// A PNG of the whole page, or of the element that `selector` names.
  async screenshot(selector = 'html') {
    const clip = await this.evaluate(`(() => {
      const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
      return {x: box.x + scrollX, y: box.y + scrollY, width: Math.ceil(box.width), height: Math.ceil(box.height), scale: 1};
    })()`);
    const {data} = await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: true, clip});
    return Buffer.from(data, 'base64');
  }

  close() {
    return this.browser.send('Target.closeTarget', {targetId: this.targetId});
  }
}
