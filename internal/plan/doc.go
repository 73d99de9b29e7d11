// Package plan decides, from file names, headers and small JSON files alone, what a conversion will
// write: which weights form units, which tensors pass through, and which output file holds what. It
// reads no weight bytes, opens no files, and talks to no server. If headers can show that something
// is wrong, it returns a [RefusedError]. Package catalog knows what models are called.
//
// A caller takes four steps:
//
//	survey, err := plan.Look(files, opt)          // which small files to read
//	err = survey.FindWeights(config)              // which index to read
//	weights, err := survey.WeightFiles(index)     // which headers to read
//	p, err := plan.New(ctx, plan.Source{…}, opt)  // the plan
//
// Each state of knowledge has a noun. A [Survey] is what file names show. A [Source] is what the
// caller has read after the survey. A reading is the plan in the making, with what the source's
// config says; each further state embeds the one before and fills in more of the plan. An inventory
// is every tensor of the source; a step that renames or drops some returns another inventory. A
// choice knows the entry or the rule that the dict comes from, and a former makes the dict and the
// units. The same input always makes the same plan, down to its [Plan.Digest].
package plan
