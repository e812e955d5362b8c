// Notes, keys and trees as the Go project itself reads them (golang.org/x/mod/sumdb), asked by
// tests/peers/test_signed_notes.py: one JSON object a line in, one out.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Do     string   // open, sign, record, tree, roots
	Keys   []string // public ones to open with, or the private one to sign with
	Note   string   // the note to open, or the text to sign
	Lines  []string // the leaves of a tree
	Index  int64
	Old    int64
	Size   int64
	Proof  [][]byte
	Leaf   []byte
	Root   []byte
	Before []byte // the root of the old tree
}

type answer struct {
	Error   string
	Text    string
	Note    string
	Names   []string // whose signatures are right
	Unknown []string // whose signatures no key was given for
	Roots   [][]byte // of the trees of 1, 2, 3 … lines
}

func hash(data []byte) (found tlog.Hash) {
	copy(found[:], data)
	return found
}

func hashes(data [][]byte) (found []tlog.Hash) {
	for _, one := range data {
		found = append(found, hash(one))
	}
	return found
}

func open(asked question) (said answer, err error) {
	var verifiers []note.Verifier
	for _, key := range asked.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return said, err
		}
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open([]byte(asked.Note), note.VerifierList(verifiers...))
	if err != nil {
		return said, err
	}
	said.Text = opened.Text
	for _, one := range opened.Sigs {
		said.Names = append(said.Names, one.Name)
	}
	for _, one := range opened.UnverifiedSigs {
		said.Unknown = append(said.Unknown, one.Name)
	}
	return said, nil
}

func sign(asked question) (said answer, err error) {
	signer, err := note.NewSigner(asked.Keys[0])
	if err != nil {
		return said, err
	}
	signed, err := note.Sign(&note.Note{Text: asked.Note}, signer)
	said.Note = string(signed)
	return said, err
}

func roots(asked question) (said answer, err error) {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(places []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, place := range places {
			found = append(found, stored[place])
		}
		return found, nil
	})
	for number, line := range asked.Lines {
		more, err := tlog.StoredHashes(int64(number), []byte(line), reader)
		if err != nil {
			return said, err
		}
		stored = append(stored, more...)
		root, err := tlog.TreeHash(int64(number)+1, reader)
		if err != nil {
			return said, err
		}
		said.Roots = append(said.Roots, append([]byte{}, root[:]...))
	}
	return said, nil
}

func answered(asked question) (said answer, err error) {
	switch asked.Do {
	case "open":
		return open(asked)
	case "sign":
		return sign(asked)
	case "roots":
		return roots(asked)
	case "record":
		proof := tlog.RecordProof(hashes(asked.Proof))
		return said, tlog.CheckRecord(proof, asked.Size, hash(asked.Root), asked.Index, hash(asked.Leaf))
	default:
		proof := tlog.TreeProof(hashes(asked.Proof))
		return said, tlog.CheckTree(proof, asked.Size, hash(asked.Root), asked.Old, hash(asked.Before))
	}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(os.Stdout)
	for {
		var asked question
		if decoder.Decode(&asked) != nil {
			return
		}
		said, err := answered(asked)
		if err != nil {
			said.Error = err.Error()
		}
		if encoder.Encode(said) != nil {
			return
		}
	}
}
