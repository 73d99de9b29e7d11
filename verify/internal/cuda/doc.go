// Package cuda calls NVIDIA's driver library, found and loaded while the program runs, without cgo.
// It decodes nothing and knows no format: package verify says what is copied and launched.
//
// A [Driver] finds devices. Every [Device] has one goroutine, locked to its OS thread, on which the device's primary context
// is current; [Device.Do] sends it closures, and a [Context] is what they may call. No memory of Go's is kept by the driver
// behind a call: copies that outlast their call go from and to [Pinned] memory, which is the driver's own.
package cuda
