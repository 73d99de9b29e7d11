// Package hubtest is a Hugging Face Hub inside the test process. It speaks the real
// protocol (model info, tree, resolve, LFS uploads, NDJSON commits) well enough for the official
// Python and JavaScript clients. It does not run git and does not emulate Xet. Only tests, hubd and
// the demo import it, never the converter itself.
//
// Two listeners make one server. The hub answers at http://127.0.0.1:PORT. The bytes of large files
// come from, and go to, a second listener, reached as http://localhost:PORT2 through signed URLs,
// which catches a client that doesn't drop its token when the host changes: see
// [Server.Violations].
//
//	client ──▶ request log, link speed ──▶ fault rules ──▶ hub routes ──▶ repos ─ refs ─ commits
//	                                                   └──▶ CDN routes ──▶ objects by sha256
//
// Every request is logged ([Server.Requests]) and every answer can be spoiled on purpose
// ([Server.Inject], [FaultNames]). Repos come from memory ([Server.AddRepo]), from a folder
// ([Server.AddDir]) or from a function of the offset ([Server.AddGenerated]); [NewLlama] and
// [NewQwen3] make small models whose weights look trained.
package hubtest
