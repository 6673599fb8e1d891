// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What cosign calls the parts of a signature in a registry.
const (
	payloadType         = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	bundleAnnotation    = "dev.sigstore.cosign/bundle"
)

// A payload is what is signed: which content an image has, and where it was published.
type payload struct {
	Critical struct {
		Identity struct {
			DockerReference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			DockerManifestDigest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Tag is where a repository has the signatures of a digest.
func Tag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex + ".sig" }

// SignImage adds a signature of an image's digest, recorded in a log, to the signatures that there are already; nil is none.
func (k *Key) SignImage(ctx context.Context, log *Log, repository string, digest v1.Hash, present v1.Image) (v1.Image, error) {
	p := payload{}
	p.Critical.Identity.DockerReference = repository
	p.Critical.Image.DockerManifestDigest = digest.String()
	p.Critical.Type = "cosign container image signature"
	message, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot describe %s@%s: %w", repository, digest, err)
	}
	signature, err := k.Sign(message)
	if err != nil {
		return nil, err
	}
	bundle, err := log.Record(ctx, message, signature, k.public)
	if err != nil {
		return nil, err
	}
	if present == nil {
		present = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	signed, err := mutate.Append(present, mutate.Addendum{
		Layer: static.NewLayer(message, payloadType),
		Annotations: map[string]string{
			signatureAnnotation: base64.StdEncoding.EncodeToString(signature),
			bundleAnnotation:    string(bundle),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot store the signature of %s@%s: %w", repository, digest, err)
	}
	return signed, nil
}

// VerifyImage returns nil when one of an image's signatures is valid for a public key and the digest, and recorded in a log.
func VerifyImage(signatures v1.Image, digest v1.Hash, public []byte) error {
	manifest, err := signatures.Manifest()
	if err != nil {
		return fmt.Errorf("cannot read signatures: %w", err)
	}
	failed := errors.New("there is no signature")
	for _, descriptor := range manifest.Layers {
		if failed = verifyLayer(signatures, descriptor, digest, public); failed == nil {
			return nil
		}
	}
	return fmt.Errorf("cannot verify %s: %w", digest, failed)
}

func verifyLayer(signatures v1.Image, descriptor v1.Descriptor, digest v1.Hash, public []byte) error {
	if descriptor.Annotations[bundleAnnotation] == "" {
		return errors.New("a signature is in no transparency log")
	}
	signature, err := base64.StdEncoding.DecodeString(descriptor.Annotations[signatureAnnotation])
	if err != nil {
		return fmt.Errorf("cannot decode a signature: %w", err)
	}
	layer, err := signatures.LayerByDigest(descriptor.Digest)
	if err != nil {
		return fmt.Errorf("cannot find what is signed: %w", err)
	}
	content, err := layer.Uncompressed()
	if err != nil {
		return fmt.Errorf("cannot read what is signed: %w", err)
	}
	message, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("cannot read what is signed: %w", err)
	}
	if err := Verify(message, signature, public); err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(message, &p); err != nil {
		return fmt.Errorf("cannot read what is signed: %w", err)
	}
	if signed := p.Critical.Image.DockerManifestDigest; signed != digest.String() {
		return fmt.Errorf("the signature belongs to %s", signed)
	}
	return nil
}

// Verify returns nil when the signature belongs to the message, by the private half of a public key in PEM.
func Verify(message, signature, public []byte) error {
	key, err := publicKey(public)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(message)
	if !ecdsa.VerifyASN1(key, digest[:], signature) {
		return errors.New("the signature was not made with this key, or not of this content")
	}
	return nil
}

func publicKey(data []byte) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("cannot use a public key that is not in PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse a public key: %w", err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("cannot use a public key of type %T: it has to be an ECDSA key", key)
	}
	return public, nil
}
