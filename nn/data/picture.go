package data

import (
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // the formats a directory of images may hold
	_ "image/png"

	"golang.org/x/image/draw"

	"dahl/rundir/durable"
)

// maxImageExtent refuses pictures whose header promises absurd sizes, before any pixel is
// decoded.
const maxImageExtent = 1 << 14

// maxPixelsPerByte bounds what a picture's header is believed: a byte that deflate makes has up to
// eight pixels, and JPEG spends a bit on 64 pixels at least.
const maxPixelsPerByte = 8 * maxInflation

// pictures is images in files of their own. They have the extents of one of them, or are scaled. Grey ones among others get three
// equal channels.
type pictures struct {
	paths []string
	shape [3]int // of the images
	like  string // a picture with these extents; empty means that they are scaled
}

func (p *pictures) open() (reader, error) { return p, nil }
func (p *pictures) Close() error          { return nil }

func (p *pictures) readFrom(first int, dst []byte) error {
	size := p.shape[0] * p.shape[1] * p.shape[2]
	for ; len(dst) > 0; first++ {
		if err := p.decode(dst[:size], p.paths[first]); err != nil {
			return err
		}
		dst = dst[size:]
	}
	return nil
}

// imageShape reads the extents of a picture without decoding it. It has one channel if it is
// grey, else three.
func imageShape(path string) (shape [3]int, err error) {
	f, err := durable.Open(path)
	if err != nil {
		return shape, err
	}
	defer f.Close()
	cfg, _, err := image.DecodeConfig(f)
	if err != nil {
		return shape, fmt.Errorf("%s: %w; replace the file or remove it", path, err)
	}
	if cfg.Width < 1 || cfg.Height < 1 || cfg.Width > maxImageExtent || cfg.Height > maxImageExtent {
		return shape, fmt.Errorf("%s: %d×%d pixels; the largest picture read is %d×%d",
			path, cfg.Width, cfg.Height, maxImageExtent, maxImageExtent)
	}
	info, err := f.Stat()
	if err != nil {
		return shape, err
	}
	if int64(cfg.Width)*int64(cfg.Height) > maxPixelsPerByte*info.Size() {
		return shape, fmt.Errorf("%s: %d×%d pixels are more than its %d bytes can hold; replace the file or remove it", path, cfg.Width, cfg.Height, info.Size())
	}
	channels := 3
	if cfg.ColorModel == color.GrayModel || cfg.ColorModel == color.Gray16Model {
		channels = 1
	}
	return [3]int{channels, cfg.Height, cfg.Width}, nil
}

// check refuses a picture of other extents, unless it is scaled. It reports whether the picture is grey.
func (p *pictures) check(path string) (grey bool, err error) {
	got, err := imageShape(path)
	if err == nil && p.like != "" && (got[1] != p.shape[1] || got[2] != p.shape[2]) {
		err = fmt.Errorf("%s has %d×%d pixels (height×width), but %s has %d×%d; all images must be of one size: --resize %d×%d makes them so",
			path, got[1], got[2], p.like, p.shape[1], p.shape[2], p.shape[1], p.shape[2])
	}
	return got[0] == 1, err
}

// decode fills dst with the channels of a picture, one after the other. The picture may have changed since it was checked.
func (p *pictures) decode(dst []byte, path string) error {
	grey, err := p.check(path)
	if err == nil && p.shape[0] == 1 && !grey {
		err = fmt.Errorf("%s is not grey, as all were when the data were opened; leave the data alone while they are trained on", path)
	}
	if err != nil {
		return err
	}
	f, err := durable.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	img, _, err := image.Decode(f)
	if err != nil {
		return fmt.Errorf("%s: %w; replace the file or remove it", path, err)
	}
	writePixels(dst, img, p.shape)
	return nil
}

// writePixels fills dst with the channels of a picture in the extents of a shape. What is transparent lies over black. A picture of other
// extents is scaled in both directions to what it has to fill, by linear interpolation between its pixels. Where it shrinks, each pixel
// is the mean of those that it covers, weighed by a triangle over twice its width (as in PIL's and torchvision's bilinear with
// antialias).
func writePixels(dst []byte, img image.Image, shape [3]int) {
	size := image.Rect(0, 0, shape[2], shape[1])
	if img.Bounds().Size() != size.Size() {
		img = scaled(img, size)
	}
	pixels := shape[1] * shape[2]
	if shape[0] == 1 {
		grey := image.Gray{Pix: dst, Stride: shape[2], Rect: size}
		draw.Draw(&grey, size, img, img.Bounds().Min, draw.Src)
		return
	}
	rgba := image.NewRGBA(size)
	draw.Draw(rgba, size, img, img.Bounds().Min, draw.Src)
	for i := range pixels {
		for channel := range shape[0] {
			dst[channel*pixels+i] = rgba.Pix[4*i+channel]
		}
	}
}

// scaled is a picture in other extents, each channel rounded to a byte.
func scaled(img image.Image, size image.Rectangle) image.Image {
	fine := image.NewRGBA64(size)
	draw.BiLinear.Scale(fine, size, img, img.Bounds(), draw.Src, nil)
	rounded := image.NewRGBA(size)
	for i := range rounded.Pix { // of 2 bytes each, 257 times as large
		v := uint32(fine.Pix[2*i])<<8 | uint32(fine.Pix[2*i+1])
		rounded.Pix[i] = byte((v + 128) / 257)
	}
	return rounded
}
