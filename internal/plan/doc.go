// Package plan decides, from file names, headers and small JSON files alone, what a conversion will
// write: which weights form units, which tensors pass through, and which output file holds what. It
// reads no weight bytes, opens no files and talks to no server; whatever headers can show to be
// wrong is a [RefusedError] here.
//
// A caller goes three steps:
//
//	survey, err := plan.Look(files, opt)          // which small files to read
//	weights, err := survey.WeightFiles(index)     // which headers to read
//	p, err := plan.New(ctx, plan.Source{…}, opt)       // the plan
//
// One noun stands for each state of knowledge. A [Survey] is what file names tell. A [Source] is
// what the caller has read on the survey's advice. An inventory is every tensor of the source. A
// draft is the source, the inventory and the half-made [Plan] that the steps of [New] work on.
//
// The catalog of known models is data: catalog/*.json, described in docs/models.md. The rules are
// those of docs/format.md §9, §10, §14 and §15. The same input always gives the same plan, down to
// its [Plan.Digest].
package plan
