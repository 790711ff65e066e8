// The cell that reproduces what the app shows: text to read, and a button that copies it.
export default {
  render({ model, el, signal }) {
    const button = document.createElement("button");
    button.className = "pipeline-button";
    button.textContent = "Copy";
    const text = document.createElement("pre");
    text.className = "pipeline-code";
    text.tabIndex = 0;
    el.classList.add("pipeline-codes");
    el.append(button, text);
    const follow = () => {
      text.textContent = model.get("text");
      button.textContent = "Copy";
    };
    // where pages may not write to the clipboard, the text is selected, ready to be copied by keyboard
    const select = () => {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: press Ctrl+C";
    };
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(model.get("text"));
        button.textContent = "Copied";
      } catch {
        select();
      }
    });
    model.on("change:text", follow);
    signal.addEventListener("abort", () => model.off("change:text", follow));
    follow();
  },
};
