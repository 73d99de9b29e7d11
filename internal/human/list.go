package human

import (
	"fmt"
	"strings"
)

// List names the first five of a list, and says how many more there are.
func List(names []string) string {
	if len(names) > 6 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), len(names)-5)
	}
	return strings.Join(names, ", ")
}
