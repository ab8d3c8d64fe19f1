// Files of records: chosen or dropped, and sent to the server.

import { get, postFile } from "./api.js";
import { el, notice } from "./dom.js";
import { keepFile, keptFile } from "./filestore.js";

const MOST = 16 * 2 ** 20; // bytes that the server accepts

/** Send a file to the server and open the viewer. */
export async function openFile(file) {
  if (file.size > MOST) {
    notice(`${file.name} is too large; the limit is ${MOST / 2 ** 20} MiB.`);
    return;
  }
  await openRecords(file.name, () => file.arrayBuffer());
}

/** Send records to the server and open the viewer. */
export async function openRecords(name, content) {
  try {
    const given = await content();
    const { key } = await postFile(name, given);
    await keepFile(key, name, given);
    location.assign(`/replay/${key}`);
  } catch (error) {
    notice(error.message);
  }
}

/** The list of a file's games; a file that the server no longer holds is handed to it again. */
export async function listed(key) {
  try {
    return await get(`files/${key}`);
  } catch (error) {
    const file = error.status === 404 ? await keptFile(key) : null;
    if (file === null) throw error;
    return await postFile(file.name, file.content);
  }
}

/** A field that takes a file. */
export function chooser() {
  const input = el("input", { type: "file", accept: ".jsonl,.json,.gz", id: "record-file", onchange: choose });
  async function choose() {
    if (input.files.length) await openFile(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  }
  return el("label", { class: "chooser", for: "record-file" }, "Choose a file or drop it here", input);
}
