package pipeline

// LimitPieces bounds what is kept in memory of the files of a model on the Hub, which are read by pieces; by default it is
// 96 MiB. It does nothing for a folder. Call it before the model is used.
func (d *DF11) LimitPieces(nBytes int64) {
	for _, f := range d.files {
		if h, ok := f.r.(*hubReaderAt); ok {
			h.cache.setLimit(nBytes)
		}
	}
}
