package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/df11-convert/df11-convert/internal/human"
	"github.com/df11-convert/df11-convert/internal/plan"
)

// checkIncluded refuses patterns of --include that match no file, and names of files that can't come
// along. What a pattern such as *.md matches besides is simply left out.
func checkIncluded(o *opened, include []string) error {
	if len(include) == 0 {
		return nil
	}
	folder, files := o.model.Listing.Folder, o.model.Listing.Files
	if folder == nil {
		return hinted{usagef("--include: %s is a repo, which is copied without it", o.model.ID), "leave --include out"}
	}
	paths := transform(files, func(f plan.File) string { return f.Path })
	if glob := folder.Unmatched(include, paths); glob != "" {
		return hinted{usagef("--include %s: no file of the folder matches", glob),
			"list the files that stay with: df11-convert plan"}
	}
	for _, f := range o.plan.NotCopied {
		if slices.Contains(include, f.Path) {
			return hinted{usagef("--include: %s can't come along (%s)", f.Path, f.Why), "leave it out"}
		}
	}
	return nil
}

// staying says which files of a folder the result doesn't get, or returns "".
func staying(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in the folder, because no reader of the model opens them: %s (see plan; --include GLOB "+
		"brings some)", choose(len(files) == 1, "1 file stays", fmt.Sprint(len(files), " files stay")),
		human.List(byFolder(files)))
}

// byFolder lists files at the root, and folders with the number of files in them.
func byFolder(files []string) (list []string) {
	for _, group := range alike(files, func(f string) string { top, _, _ := strings.Cut(f, "/"); return top }) {
		top, _, nested := strings.Cut(group[0], "/")
		if nested {
			top += "/"
		}
		if len(group) > 1 {
			top += " (" + count(len(group), "file") + ")"
		}
		list = append(list, top)
	}
	return list
}
