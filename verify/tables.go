package verify

// tables are the lookup tables of a unit as stored (docs/format.md §6). parseTables has checked
// them, so walking them is always safe.
type tables struct {
	rows    [maxTables][rowBytes]uint8
	nTables int
	// the last row, but 0 for codes over 32 bits, on which a GPU would hang
	length [256]uint8
	raw    []byte // luts as stored, to check unread bytes
}

// readTables reads and checks luts.
func readTables(a Arrays) (*tables, error) {
	if n := a[NameLUTs].Size(); n > (maxTables+1)*rowBytes {
		return nil, badArray(NameLUTs, "%d bytes, the most is %d", n, (maxTables+1)*rowBytes)
	}
	luts, err := a.readAll(NameLUTs)
	if err != nil {
		return nil, err
	}
	return parseTables(luts)
}

// parseTables checks luts, nRows*256 bytes, and keeps a reference to it.
//
// Slots that no code leads to hold leftovers of the official encoder's fill (the leak rule of
// docs/format.md §6). They may jump in circles or have no length. parseTables tolerates this only
// in these slots.
func parseTables(luts []byte) (*tables, error) {
	nRows := len(luts) / rowBytes
	if len(luts)%rowBytes != 0 || nRows < 2 || nRows > maxTables+1 {
		return nil, badArray(NameLUTs, "%d bytes, want 2 to %d rows of %d", len(luts),
			maxTables+1, rowBytes)
	}
	t := &tables{nTables: nRows - 1, raw: luts}
	for i := range t.nTables {
		copy(t.rows[i][:], luts[i*rowBytes:])
	}
	for s, l := range luts[t.nTables*rowBytes:] {
		if l <= maxCodeBits {
			t.length[s] = l
		}
	}
	if err := t.checkTable(0, 0, new([maxLevels][maxTables]bool)); err != nil {
		return nil, err
	}
	if _, nBits := t.next(0); nBits == 0 {
		return nil, badAt(NameLUTs, 0,
			"the zero bits after the end of the stream are no code, so a GPU would hang")
	}
	return t, nil
}

// next decodes one code at the top of bits as the kernel does (docs/format.md §9), with up to four
// lookups of 8 bits each. nBits = 0 means that there is no code.
func (t *tables) next(bits uint32) (symbol, nBits uint8) {
	v := t.rows[0][bits>>24]
	for shift := 16; v >= jumpMin; shift -= 8 {
		row := 256 - int(v)
		if shift < 0 || row >= t.nTables {
			return 0, 0
		}
		v = t.rows[row][uint8(bits>>shift)]
	}
	return v, t.length[v]
}

// leaked reports whether slot s of table i holds the running value of the encoder's fill
// (docs/format.md §6, leak rule).
func (t *tables) leaked(i, s int) bool {
	if i == 0 {
		return false
	}
	v := t.rows[i-1][rowBytes-1]
	for _, slot := range t.rows[i][:s+1] {
		if slot != v {
			return false
		}
	}
	return true
}

// checkTable checks table i, reached after depth lookups, and every table that it leads to. done
// says which tables were checked at which depth. The limit on levels also ends walks in circles.
func (t *tables) checkTable(i, depth int, done *[maxLevels][maxTables]bool) error {
	if done[depth][i] {
		return nil
	}
	done[depth][i] = true
	for s, v := range t.rows[i] {
		if t.leaked(i, s) {
			continue
		}
		pos := int64(i*rowBytes + s)
		if v >= jumpMin {
			row := 256 - int(v)
			switch {
			case row >= t.nTables:
				return badAt(NameLUTs, pos, "jump to table %d of %d", row, t.nTables)
			case depth+1 >= maxLevels:
				return badAt(NameLUTs, pos, "jump at level %d, the last level", depth+1)
			}
			if err := t.checkTable(row, depth+1, done); err != nil {
				return err
			}
			continue
		}
		l := int(t.raw[t.nTables*rowBytes+int(v)])
		if l <= 8*depth || l > 8*depth+8 {
			return badAt(NameLUTs, pos, "symbol %d at level %d has a code of %d bits", v, depth+1,
				l)
		}
	}
	return nil
}
