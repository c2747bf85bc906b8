// What Tauri puts into the page, as far as `ui/backend.js` uses it.
interface Window {
  __TAURI__: {
    core: { invoke: (command: string, values?: object) => Promise<any> };
    event: { listen: (event: string, then: () => void) => Promise<unknown> };
  };
}
