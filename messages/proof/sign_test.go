package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// For any key and text, Signature must return the same bytes as crypto/ed25519. The first case is the third one of RFC
// 8032, section 7.1.
func TestSignatureIsThatOfTheLibrary(t *testing.T) {
	seeds := [][]byte{{
		0xc5, 0xaa, 0x8d, 0xf4, 0x3f, 0x9f, 0x83, 0x7b, 0xed, 0xb7, 0x44, 0x2f, 0x31, 0xdc, 0xb7, 0xb1,
		0x66, 0xd3, 0x85, 0x35, 0x07, 0x6f, 0x09, 0x4b, 0x85, 0xce, 0x3a, 0x2e, 0x0b, 0x44, 0x58, 0xf7,
	}, bytes.Repeat([]byte{0}, 32), bytes.Repeat([]byte{0xff}, 32)}
	texts := [][]byte{{0xaf, 0x82}, nil, bytes.Repeat([]byte("a"), 1023)}
	for range 500 {
		random := make([]byte, 200)
		_, _ = rand.Read(random)
		seeds, texts = append(seeds, random[:32]), append(texts, random[32:32+int(random[0])%168])
	}
	for i, seed := range seeds {
		pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, seed)
		if err != nil {
			t.Fatal(err)
		}
		text, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		p := proof.Principal{Seed: string(text)}
		got, err := p.Signature(texts[i])
		if want := ed25519.Sign(ed25519.NewKeyFromSeed(seed), texts[i]); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %x, text %x: %x, %v, want %x", seed, texts[i], got, err, want)
		}
	}
	if _, err := (&proof.Principal{Seed: "SUxyz"}).Signature(nil); messages.KindOf(err) != messages.Invalid {
		t.Errorf("what is no seed: %v", err)
	}
}
