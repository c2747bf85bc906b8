// Logs in with Chromium on the pages of `oidc-provider`: PAGE. Prints the text of the last page.

import { chromium } from "../../../target/npm/node_modules/playwright-core/index.mjs";

const [page, act] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", chromiumSandbox: false });
const tab = await browser.newPage({ ignoreHTTPSErrors: true });
// The pages want a font from the internet.
await tab.route((url) => !/^(127\.0\.0\.1|.*\.example\.test)$/.test(url.hostname), (route) => route.abort());
await tab.goto(page);
if (act !== "look") {
  await tab.fill("input[name=login]", "me");
  await tab.fill("input[name=password]", "any");
  await tab.click("button[type=submit]");
  await tab.click(act === "refuse" ? "text=[ Cancel ]" : "button:has-text('Continue')");
  await tab.waitForURL((url) => url.hostname === "127.0.0.1" && url.pathname === "/callback");
}
console.log(await tab.innerText("body"));
await browser.close();
