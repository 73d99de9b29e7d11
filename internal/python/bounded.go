package python

import (
	"bytes"
	"fmt"
)

// Bounded checks that JSON text, or several texts in a row, have at most the given numbers of
// objects and of values in objects and lists. It decodes and allocates nothing, while a decoder
// makes a large value of every few bytes. Text that is no JSON may pass.
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

// stringEnd finds the quotation mark that ends the string which begins at i; the end of data if
// there is none.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		n := bytes.IndexAny(data[i:], `"\`)
		if n < 0 {
			return len(data)
		}
		if i += n; data[i] == '"' {
			return i
		}
		i++ // the character behind a backslash
	}
	return i
}
