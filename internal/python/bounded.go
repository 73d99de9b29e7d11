package python

import (
	"bytes"
	"fmt"
)

// Bounded checks that JSON text, or several texts in a row, has at most mostObjects objects, and at
// most mostValues values in objects and lists. It decodes and allocates nothing, while a decoder
// turns every few bytes into a large value. Invalid JSON may pass.
func Bounded(data []byte, mostObjects, mostValues int) error {
	objects, values := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{':
			objects, values = objects+1, values+1
		case '[', ',':
			values++
		}
		if objects > mostObjects {
			return fmt.Errorf("JSON with more than %d objects", mostObjects)
		}
		if values > mostValues {
			return fmt.Errorf("JSON with more than %d values", mostValues)
		}
	}
	return nil
}

// stringEnd returns the position of the quotation mark that ends the string beginning at i, or the
// end of data if there is none.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		n := bytes.IndexAny(data[i:], `"\`)
		if n < 0 {
			return len(data)
		}
		if i += n; data[i] == '"' {
			return i
		}
		i++ // skip the escaped character
	}
	return i
}
