// Package plan decides, from file names, headers and small JSON files alone, what a conversion will
// write: which weights form units, which tensors pass through, and which output file holds what. It
// reads no weight bytes, opens no files and talks to no server; whatever headers can show to be
// wrong is a [RefusedError] here. Package catalog knows what models are called.
//
// A caller goes three steps:
//
//	survey, err := plan.Look(files, opt)          // which small files to read
//	weights, err := survey.WeightFiles(index)     // which headers to read
//	p, err := plan.New(ctx, plan.Source{…}, opt)  // the plan
//
// One noun stands for each state of knowledge. A [Survey] is what file names tell. A [Source] is
// what the caller has read on the survey's advice, a reading is the source with what its config
// says. An inventory is every tensor of the source; a step that renames or drops some returns
// another one. A choice is the entry or the rule that the dict comes from, and a former makes the
// dict and the units of it. [New] puts together what they return. The same input always gives the
// same plan, down to its [Plan.Digest].
package plan
