// Command strict_decode reads a JSON array of objects from standard input and decodes each one with Metal3's own types,
// where no field may be unknown. The three keys that our definitions add are removed before (KD3). It prints one line
// for each object that cannot be decoded, and ends with 1 if there is one.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	ipam "github.com/metal3-io/ip-address-manager/api/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

func main() {
	scheme := runtime.NewScheme()
	if err := ipam.AddToScheme(scheme); err != nil {
		panic(err)
	}
	decoder := serializer.NewSerializerWithOptions(
		serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true},
	)
	var objects []map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		panic(err)
	}
	failed := false
	for _, object := range objects {
		withoutOurs(object)
		text, err := json.Marshal(object)
		if err == nil {
			_, _, err = decoder.Decode(text, nil, nil)
		}
		if err != nil {
			failed = true
			fmt.Printf("%v: %v\n", object["kind"], err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func withoutOurs(object map[string]any) {
	remove(object, "spec", "allocationStrategy")
	remove(object, "spec", "tenure")
	remove(object, "status", "tenure")
}

func remove(object map[string]any, part, key string) {
	if fields, ok := object[part].(map[string]any); ok {
		delete(fields, key)
	}
}
