package streams

import (
	"io"
	"sort"
)

// Joined reads sections as one, each after the one before. Goroutines may share it.
type Joined struct {
	sections []*io.SectionReader
	ends     []int64 // where the sections end
}

// Join returns sections joined in order.
func Join(sections ...*io.SectionReader) *Joined {
	j := &Joined{sections: sections}
	for _, s := range sections {
		j.ends = append(j.ends, j.Size()+s.Size())
	}
	return j
}

// Size returns the size of all sections.
func (j *Joined) Size() int64 {
	if len(j.ends) == 0 {
		return 0
	}
	return j.ends[len(j.ends)-1]
}

// Section returns a reader of all of it.
func (j *Joined) Section() *io.SectionReader { return io.NewSectionReader(j, 0, j.Size()) }

// ReadAt is [io.ReaderAt], across sections.
func (j *Joined) ReadAt(p []byte, off int64) (int, error) {
	i := sort.Search(len(j.ends), func(i int) bool { return j.ends[i] > off })
	done := 0
	for ; done < len(p) && i < len(j.ends); i++ {
		left := j.ends[i] - off - int64(done)
		n := min(int64(len(p)-done), left)
		m, err := j.sections[i].ReadAt(p[done:done+int(n)], j.sections[i].Size()-left)
		done += m
		if int64(m) < n {
			return done, Short(err)
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}
