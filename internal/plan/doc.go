// Package plan decides, from file names, headers and small JSON files alone, what a conversion will
// write: which weights form units, which tensors pass through, and which output file holds what. It
// reads no weight bytes, opens no files, and talks to no server. If headers can show that something
// is wrong, it returns a [RefusedError]. Package catalog knows what models are called.
//
// A caller takes four steps:
//
//	survey, err := plan.Look(files, opt)          // which small files to read
//	set, err := survey.FindWeights(config)        // which index to read
//	weights, err := set.Files(index)              // which headers to read
//	p, err := plan.New(ctx, plan.Source{…}, opt)  // the plan
//
// [New] is a row of steps. Each takes what earlier steps have made, changes none of it, and returns
// its own part of the plan:
//
//	readSource     source.go     reading      what the small files say
//	takeInventory  inventory.go  inventory    every tensor of the source
//	recognize      recognize.go  recognition  the catalog's entry, and what loads the output
//	conform        tied.go       checkpoint   the tensors as the class names and shares them
//	makeDict       dict.go       dictionary   the pattern dict
//	formUnits      units.go      division     the units, and the tensors outside
//	placeFiles     files.go      placement    the files of the output
//	askReaders     readers.go    verdicts     which programs load it, and how
//
// What the user should know goes into [Notes] on the way. The same input always makes the same plan,
// down to its [Plan.Digest].
package plan
