// Package cuda calls NVIDIA's driver library, found and loaded while the program runs, without cgo.
// It decodes nothing and knows no format: package verify says what is copied and launched.
//
// A [Driver] finds devices. Every [Device] has one goroutine, locked to its OS thread, on which the
// device's primary context is current; [Device.Do] sends it closures, which call the methods of a
// [Context]. The driver keeps no memory of Go's after a call: copies that outlast their call go
// from and to [Pinned] memory, which is the driver's own.
package cuda
