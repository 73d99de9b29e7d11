// Package cuda calls NVIDIA's driver library without cgo. It finds and loads the library while the
// program runs. It decodes nothing and knows no format: package verify decides what to copy and
// launch.
//
// A [Driver] finds devices. Every [Device] has one goroutine, locked to its OS thread, on which the
// device's primary context is current. [Device.Do] sends it closures, which call the methods of a
// [Context]. The driver keeps no reference to Go's memory after a call: copies that outlast their
// call use [Pinned] memory, which belongs to the driver.
package cuda
