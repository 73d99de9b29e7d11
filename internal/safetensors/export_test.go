package safetensors

// HeaderSize is headerSize, for tests of files that are too large to make.
var HeaderSize = headerSize
