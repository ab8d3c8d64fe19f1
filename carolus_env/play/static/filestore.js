// Opened files, kept in the browser: a restarted server gets them again, and links to them stay.

const DATABASE = "carolus";
const FILES = "files";
const MOST = 5;

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(FILES, { keyPath: "key" }).createIndex("when", "when");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function answered(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Keep a file under the server's key, if the browser can; the oldest of many is dropped. */
export async function keepFile(key, name, content) {
  try {
    const database = await opened();
    const files = database.transaction(FILES, "readwrite").objectStore(FILES);
    await answered(files.put({ key, name, content, when: Date.now() }));
    const keys = await answered(files.index("when").getAllKeys());
    await Promise.all(keys.slice(0, -MOST).map((old) => answered(files.delete(old))));
    database.close();
  } catch {
    /* the storage is full or not allowed */
  }
}

/** The file that is kept under a key: `{key, name, content}`; null: there is none. */
export async function keptFile(key) {
  try {
    const database = await opened();
    const file = await answered(database.transaction(FILES).objectStore(FILES).get(key));
    database.close();
    return file ?? null;
  } catch {
    return null;
  }
}
