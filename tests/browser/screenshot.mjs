// node screenshot.mjs report.html picture.png [width] [light|dark] [height] [without]
// A picture of a report: of the whole page, or of its first `height` pixels; `without` is a selector of
// what is left out.

import {writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {Browser, findChromium} from './chromium.mjs';

const [report, picture, width = '1200', scheme = 'light', height, without] = process.argv.slice(2);
const {path, reason} = findChromium();
if (!report || !picture || !path) {
  console.error(reason || 'usage: node screenshot.mjs report.html picture.png [width] [light|dark] [height] [without]');
  process.exit(2);
}
const browser = await Browser.start(path);
try {
  const page = await browser.open(pathToFileURL(resolve(report)).href, {width: Number(width), dark: scheme === 'dark'});
  if (without) await page.evaluate(`document.querySelectorAll(${JSON.stringify(without)}).forEach((one) => one.remove())`);
  if (height) {
    await page.evaluate(`document.documentElement.style.cssText = 'height: ${Number(height)}px; overflow: hidden'`);
  }
  writeFileSync(picture, await page.screenshot());
} finally {
  await browser.close();
}
