// Package catalog recognizes models: which class a config.json states, which entry of the catalog
// it has, which modules of it are units, and how ComfyUI and the libraries name things. It sees
// names and small JSON files, but no tensor and no source.
//
// An [Entry] is one model class, and a [PatternDict] says which of its modules are units. [Facts]
// say how its library loads it, and [Tried] says what came out when the official loader did. The
// entries are data: entries/*.json, described in docs/models.md. The rules are those of
// docs/format.md §9, §10, §14 and §15.
package catalog
