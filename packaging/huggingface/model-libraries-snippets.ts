export const df11 = (model: ModelData): string[] => {
	const id = JSON.stringify(model.id);
	if (model.config?.diffusers) {
		const takesImage = /Control|Edit|Fill|Img2Img|Inpaint|Kontext|Layered|Redux/.test(model.config.diffusers._class_name ?? "");
		const picture = model.pipeline_tag === "text-to-image" && !takesImage ? `\npipe("a cat").images[0].save("cat.png")` : "";
		return [`import df11

pipe = df11.load_pipeline(${id})${picture}`];
	}
	if (model.config?.architectures?.[0]?.endsWith("ForCausalLM")) {
		return [`import df11, transformers

model = df11.load(${id})
tokenizer = transformers.AutoTokenizer.from_pretrained(${id})
inputs = tokenizer("The three laws of thermodynamics are", return_tensors="pt").to(model.device)
print(tokenizer.decode(model.generate(**inputs, max_new_tokens=128)[0]))`];
	}
	return [`import df11

model = df11.load(${id})`];
};
