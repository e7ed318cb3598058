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

// The theme finds all words that begin with those of a query, and takes a leading "-" for "not".
// Here options such as --tap are words, whole words count more than beginnings, and the small words of a question nothing.
const SMALL = /^(a|an|and|are|can|do|does|for|from|how|i|in|is|it|my|of|on|or|that|the|to|what|where|which|why|with)$/i
const prepared = (query) => {
  const words = query.split(/\s+/).map((word) => word.replace(/^-+(?=\w)/, "")).filter(Boolean)
  const telling = words.filter((word) => !SMALL.test(word))
  const chosen = telling.length ? telling : words
  return [...chosen, ...chosen.filter((word) => /^\w+$/.test(word)).map((word) => `${word}^20`)].join(" ")
}
window.Worker = class extends Worker {
  postMessage(message, ...others) {
    super.postMessage(typeof message?.data === "string" ? { ...message, data: prepared(message.data) } : message, ...others)
  }
}
