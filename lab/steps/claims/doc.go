// Package claims holds what is commonly said of CRD versions against an API server. Its test makes docs/claims.md: each claim
// is a text and a small scene, and whether it is true is computed from what the server did in that scene.
//
//	go test ./lab/steps/claims           fails where the page says something else than the server
//	go test ./lab/steps/claims -update   writes the page anew
package claims
