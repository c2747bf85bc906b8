// A browser that shows the page with a fake app: the app's web engine, driven over WebDriver, on a private screen.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { withSprite } from "./shell.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const UI = join(HERE, "../../ui");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2" };
/** Files of the tests that are served beside those of the window. */
const OWN = ["/made.js", "/parts.html", "/sheet.css", "/sheet.js"];
const BOUND_MS = 30_000;

/** Returns the app's content security policy without the IPC source. */
async function policy() {
  const { app } = JSON.parse(await readFile(join(HERE, "../../tauri.conf.json"), "utf8"));
  return app.security.csp.replace(/connect-src[^;]*;/, "connect-src 'none';");
}

/** Serves `ui/` with the fake app loaded first. Files in `missing` do not exist. */
export async function serve(missing = new Set()) {
  const csp = await policy();
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const path = pathname === "/" ? "/index.html" : normalize(pathname);
    const from = OWN.includes(path) ? join(HERE, path) : join(UI, path);
    try {
      if (missing.has(path)) throw new Error("missing");
      let body = await readFile(from);
      if (path === "/parts.html") body = withSprite(String(body));
      if (path.endsWith(".html")) body = String(body).replace('<script type="module"', '<script src="made.js"></script>\n    <script type="module"');
      response.writeHead(200, { "content-type": TYPES[extname(from)] ?? "text/plain", "content-security-policy": csp, "cache-control": "no-store" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

/** Starts a virtual screen and returns its number. */
async function screen(width, height, children) {
  const xvfb = spawn("Xvfb", ["-displayfd", "1", "-screen", "0", `${width}x${height}x24`, "-nolisten", "tcp"], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(xvfb);
  return new Promise((ready, failed) => {
    xvfb.on("error", failed);
    xvfb.stdout.once("data", (line) => ready(`:${String(line).trim()}`));
  });
}

async function freePort() {
  const socket = createSocket();
  await new Promise((ready) => socket.listen(0, "127.0.0.1", ready));
  const { port } = socket.address();
  await new Promise((ready) => socket.close(ready));
  return port;
}

const MINI = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";

export class Browser {
  #children = [];
  #base = "";
  #server;
  #session = "";
  #settings = "";
  #missing = new Set();

  /**
   * Opens a browser of this size. It draws as the app does on X11. With compositing, it can take pictures, but needs much
   * more time. Without animations, the desktop's setting asks programs for reduced motion.
   */
  static async open({ width = 1280, height = 800, isComposited = false, hasAnimations = true } = {}) {
    const browser = new Browser();
    browser.#server = await serve(browser.#missing);
    const display = await screen(width, height, browser.#children);
    const port = await freePort();
    browser.#settings = await mkdtemp(join(tmpdir(), "window-"));
    await mkdir(join(browser.#settings, "gtk-3.0"));
    await writeFile(join(browser.#settings, "gtk-3.0/settings.ini"), `[Settings]\ngtk-enable-animations=${Number(hasAnimations)}\n`);
    const env = { ...process.env, XDG_CONFIG_HOME: browser.#settings, ...(isComposited ? {} : { WEBKIT_DISABLE_COMPOSITING_MODE: "1" }), DISPLAY: display, GDK_BACKEND: "x11", GSETTINGS_BACKEND: "memory", NO_AT_BRIDGE: "1", LANG: "C.UTF-8", DBUS_SESSION_BUS_ADDRESS: "disabled:" };
    const driver = spawn("WebKitWebDriver", [`--port=${port}`], { env, stdio: "ignore" });
    browser.#children.push(driver);
    browser.#base = `http://127.0.0.1:${port}`;
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary: MINI, args: ["--automation", "--full-screen"] } } };
    const { sessionId } = await browser.#started("POST", "/session", { capabilities });
    browser.#session = sessionId;
    await browser.#ask("POST", "/window/rect", { x: 0, y: 0, width, height });
    return browser;
  }

  async close() {
    await this.#ask("DELETE", "", undefined).catch(() => {});
    this.#children.reverse().forEach((child) => child.kill());
    this.#server.close();
    await rm(this.#settings, { recursive: true });
  }

  /** Runs a function while a file of the window does not exist. */
  async without(path, work) {
    this.#missing.add(path);
    await work().finally(() => this.#missing.delete(path));
  }

  /** Opens a page of the window, optionally on a computer that an organization manages. */
  async go(page, { theme = "light", isManaged = false } = {}) {
    await this.#ask("POST", "/url", { url: "about:blank" });
    await this.#ask("POST", "/url", { url: `http://127.0.0.1:${this.#server.address().port}/?theme=${theme}${isManaged ? "&managed" : ""}#${page}` });
    await this.run(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}`);
    await this.until(`document.querySelector("#page-${page.split("/")[0]} h1") !== null`);
    // The page sends further commands and draws the results.
    await this.settled();
  }

  /** Opens the component sheet. */
  async sheet({ theme = "light" } = {}) {
    await this.#ask("POST", "/url", { url: `http://127.0.0.1:${this.#server.address().port}/parts.html` });
    await this.run(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}`);
    await this.until(`document.querySelector("h1") !== null`);
    await this.settled();
  }

  /** Opens the question page. */
  async question({ theme = "light" } = {}) {
    await this.#ask("POST", "/url", { url: "about:blank" });
    await this.#ask("POST", "/url", { url: `http://127.0.0.1:${this.#server.address().port}/consent.html?theme=${theme}` });
    await this.run(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}`);
    await this.until(`Boolean(document.querySelector("#hint")?.textContent)`);
    await this.settled();
  }

  /** Moves the pointer to the centre of a control and performs further actions there. */
  async point(selector, ...more) {
    const [x, y] = await this.run(`const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];`);
    const actions = [{ type: "pointerMove", duration: 0, x, y }, ...more];
    await this.#ask("POST", "/actions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
  }

  /** Returns the result of a script, or of an expression without `return`. */
  run(script) {
    const body = /\breturn\b/.test(script) ? script : `return (${script});`;
    return this.#ask("POST", "/execute/sync", { script: body, args: [] });
  }

  /** Returns the value that a script passes to `done`. */
  wait(script) {
    return this.#ask("POST", "/execute/async", { script: `const done = arguments[0]; ${script}`, args: [] });
  }

  /** Waits until an expression is true. */
  async until(expression) {
    const end = Date.now() + BOUND_MS;
    while (!(await this.run(expression))) {
      if (Date.now() > end) throw new Error(`never true: ${expression}\n${await this.run("document.body.innerText")}`);
      await new Promise((later) => setTimeout(later, 20));
    }
  }

  /** Waits until all commands are answered and drawn, that is, for several consecutive frames with nothing pending. */
  settled() {
    return this.wait(`const look = (calm) => requestAnimationFrame(() => calm > 3 ? done(true) : look(made.pending === 0 ? calm + 1 : 0)); look(0);`);
  }

  /** Types keys into the focused element. */
  keys(...keys) {
    const actions = keys.flatMap((key) => [{ type: "keyDown", value: key }, { type: "keyUp", value: key }]);
    return this.#ask("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  /** Types a key with a modifier. */
  chord(held, key) {
    const actions = [["keyDown", held], ["keyDown", key], ["keyUp", key], ["keyUp", held]].map(([type, value]) => ({ type, value }));
    return this.#ask("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  /** Waits for a control, presses the pointer on it, runs a function and releases the pointer. */
  async press(selector, between = async () => {}) {
    await this.until(`const control = document.querySelector(${JSON.stringify(selector)}); control?.scrollIntoView({ block: "center" }); return control !== null && !control.disabled && control.ariaDisabled !== "true";`);
    const pointer = (actions) => this.#ask("POST", "/actions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
    // Comes from elsewhere, so that the press does not count as the second one of a double press.
    await pointer([{ type: "pointerMove", duration: 0, x: 0, y: 0 }]);
    // Follows a control that moves during redraws, as a user does.
    for (let place = "", before = null; place !== before; ) {
      before = place;
      place = await this.run(`const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)].join(" ");`);
      const [x, y] = place.split(" ").map(Number);
      await pointer([{ type: "pointerMove", duration: 0, x, y }]);
    }
    await pointer([{ type: "pointerDown", button: 0 }]);
    await between();
    await pointer([{ type: "pointerUp", button: 0 }]);
  }

  /** Presses the pointer again at the same place, as for a double click. */
  again() {
    const actions = [{ type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }];
    return this.#ask("POST", "/actions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
  }

  /** Drags one control to another, in steps. */
  async drag(from, to) {
    const centre = (selector) => this.run(`const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];`);
    const [[x, y], [toX, toY]] = [await centre(from), await centre(to)];
    const move = (part) => ({ type: "pointerMove", duration: 0, x: Math.round(x + (toX - x) * part), y: Math.round(y + (toY - y) * part) });
    const actions = [move(0), { type: "pointerDown", button: 0 }, move(0.3), move(0.7), move(1), { type: "pointerUp", button: 0 }];
    await this.#ask("POST", "/actions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
  }

  /** Returns a PNG picture of the window. */
  async picture() {
    return Buffer.from(await this.#ask("GET", "/screenshot"), "base64");
  }

  async #started(method, path, body) {
    for (const end = Date.now() + BOUND_MS; ; ) {
      try {
        return await this.#call(method, path, body);
      } catch (problem) {
        if (problem.code !== "ECONNREFUSED" && problem.cause?.code !== "ECONNREFUSED") throw problem;
        if (Date.now() > end) throw new Error("WebKitWebDriver does not answer", { cause: problem });
        await new Promise((later) => setTimeout(later, 50));
      }
    }
  }

  #ask(method, path, body) {
    return this.#call(method, `/session/${this.#session}${path}`, body);
  }

  async #call(method, path, body) {
    const response = await fetch(this.#base + path, { method, body: body && JSON.stringify(body), headers: { "content-type": "application/json" } });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${path}: ${value.error}: ${value.message}`);
    return value;
  }
}
