// Runs before the theme, whose search is a worker.
// In a page that is opened as a file, browsers start no workers: the worker runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      const address = String(url).replaceAll("&", "&amp;").replaceAll('"', "&quot;")
      frame.hidden = true
      frame.srcdoc = `<script src="${address}"></script>`
      this.inside = new Promise((resolve) => {
        frame.addEventListener("load", () => {
          frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          resolve(frame.contentWindow)
        })
      })
      document.body.append(frame)
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {}
  }
}

// To the search, a word that begins with "-" is one that pages must not have, so that no option is found: "--tap".
window.Worker = class extends Worker {
  postMessage(message, ...others) {
    const isText = typeof message?.data === "string"
    super.postMessage(isText ? { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") } : message, ...others)
  }
}
