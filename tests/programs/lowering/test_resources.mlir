// ----- TEXT
module {
}

{-#
  dialect_resources: {
    builtin: {
      plain_torch.float32: "0x040000000000803F00000040",
      "odd, with } and : and #-}": "0x0400000001FF"
    }
  }
#-}
