// Runs the code of the Hub's model page over results: check.mjs PACKAGING RESULT…
// Nothing may appear that can't load a result: no app, and no code but that of the card.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { LOCAL_APPS, MODEL_LIBRARIES_UI_ELEMENTS } from "@huggingface/tasks";
import yaml from "js-yaml";

const [packaging, ...results] = process.argv.slice(2);

// page returns what the Hub knows of a repo from its files.
function page(folder) {
  const card = fs.readFileSync(path.join(folder, "README.md"), "utf8");
  const head = yaml.load(card.match(/^---\n(.*?)\n---\n/s)[1]);
  const read = (name) => (fs.existsSync(path.join(folder, name)) ? JSON.parse(fs.readFileSync(path.join(folder, name), "utf8")) : undefined);
  const index = read("model_index.json");
  const config = { ...read("config.json"), ...(index && { diffusers: { _class_name: index._class_name } }) };
  const model = {
    id: card.match(/^# (.*)$/m)[1], inference: "", config, cardData: head, library_name: head.library_name, pipeline_tag: head.pipeline_tag,
    tags: [head.library_name, "safetensors", head.pipeline_tag, ...head.tags, `license:${head.license}`, "region:us"].filter(Boolean),
  };
  return { card, model };
}

// shown lists what the page offers: code of the library, and apps.
function shown(model, libraries) {
  const snippets = libraries[model.library_name]?.snippets?.(model) ?? [];
  const apps = Object.entries(LOCAL_APPS).filter(([, app]) => app.displayOnModelPage(model)).map(([name]) => name);
  return { snippets, apps };
}

const registered = () => {
  const text = fs.readFileSync(path.join(packaging, "model-libraries-snippets.ts"), "utf8");
  const snippets = { df11: eval(text.replace("export const df11 =", "").replace(": ModelData", "").replace(": string[]", "").replace(/;\s*$/, "")) };
  const entry = fs.readFileSync(path.join(packaging, "model-libraries.ts"), "utf8");
  return { ...MODEL_LIBRARIES_UI_ELEMENTS, ...eval(`(snippets) => ({${entry}})`)(snippets) };
};

let found = 0;
for (const folder of results) {
  const { card, model } = page(folder);
  const now = shown(model, MODEL_LIBRARIES_UI_ELEMENTS);
  assert.deepEqual(now, { snippets: [], apps: [] }, `${folder}: the Hub offers what can't load it`);
  const then = shown(model, registered());
  assert.deepEqual(then.apps, []);
  if (model.library_name === "df11") {
    const code = card.match(/```python\n(.*?)\n```/s)[1];
    assert.equal(then.snippets.join("\n"), code, `${folder}: the registered code isn't the card's`);
    found++;
  }
  // as before: the source's library, for which the page has code that loads random weights
  const wrong = shown({ ...model, library_name: model.config.diffusers ? "diffusers" : "transformers", tags: [...model.tags, "transformers"] }, MODEL_LIBRARIES_UI_ELEMENTS);
  console.log(`${path.basename(folder)}: ${model.library_name}, nothing wrong; with the source's library ${wrong.snippets.length} snippets and ${wrong.apps.length} apps`);
}
assert.ok(found >= 4);
